package main

import (
	"strings"
	"testing"
)

// A history with a line for each operation, what is looked at, and whether an order exists.
type example struct {
	name  string
	kind  string
	lines string
	code  int
}

var examples = []example{
	{"turns one after the other", "lock", `
		{"operation":"acquire","token":7,"call":1,"return":4}
		{"operation":"end","token":7,"call":6,"return":9}
		{"operation":"acquire","token":9,"call":2,"return":8}
		{"operation":"end","token":9,"call":12,"return":null}`, 0},
	{"two at once", "lock", `
		{"operation":"acquire","token":7,"call":1,"return":4}
		{"operation":"end","token":7,"call":6,"return":9}
		{"operation":"acquire","token":9,"call":2,"return":5}
		{"operation":"end","token":9,"call":12,"return":13}`, 1},
	{"two at once, and the first is killed", "lock", `
		{"operation":"acquire","token":7,"call":1,"return":4}
		{"operation":"end","token":7,"call":6,"return":null}
		{"operation":"acquire","token":9,"call":2,"return":5}`, 1},
	{"a token that does not rise", "lock", `
		{"operation":"acquire","token":7,"call":1,"return":2}
		{"operation":"end","token":7,"call":3,"return":4}
		{"operation":"acquire","token":7,"call":5,"return":6}`, 1},
	{"locks apart", "lock", `
		{"object":"a","operation":"acquire","token":7,"call":1,"return":2}
		{"object":"b","operation":"acquire","token":7,"call":3,"return":4}`, 0},
	{"a wait without a turn, one that was cut short, and the register", "lock", `
		{"operation":"acquire","token":7,"call":1,"return":2}
		{"operation":"acquire","token":null,"call":1,"return":3}
		{"operation":"acquire","token":null,"call":1,"return":null}
		{"operation":"read","token":7,"answer":5,"call":3,"return":4}`, 0},
	{"a late write that is refused", "register", `
		{"operation":"read","token":7,"answer":0,"call":1,"return":2}
		{"operation":"read","token":8,"answer":0,"call":3,"return":4}
		{"operation":"write","token":7,"base":0,"answer":null,"call":5,"return":6}
		{"operation":"write","token":8,"base":0,"answer":1,"call":7,"return":8}`, 0},
	{"a late write that is taken", "register", `
		{"operation":"read","token":7,"answer":0,"call":1,"return":2}
		{"operation":"read","token":8,"answer":0,"call":3,"return":4}
		{"operation":"write","token":7,"base":0,"answer":1,"call":5,"return":6}`, 1},
	{"a refusal without a reason", "register", `
		{"operation":"read","token":7,"answer":0,"call":1,"return":2}
		{"operation":"write","token":7,"base":0,"answer":null,"call":3,"return":4}`, 1},
	{"a stale read", "register", `
		{"operation":"write","token":7,"base":0,"answer":1,"call":1,"return":2}
		{"operation":"read","token":8,"answer":0,"call":3,"return":4}`, 1},
	{"an update that is lost", "register", `
		{"operation":"write","token":7,"base":0,"answer":1,"call":1,"return":2}
		{"operation":"write","token":7,"base":0,"answer":1,"call":3,"return":4}`, 1},
	{"a write that nobody was told of, and that was read", "register", `
		{"operation":"write","token":7,"base":0,"answer":null,"call":1,"return":null}
		{"operation":"read","token":8,"answer":1,"call":5,"return":6}`, 0},
	{"one that was never done", "register", `
		{"operation":"write","token":7,"base":0,"answer":null,"call":1,"return":null}
		{"operation":"read","token":8,"answer":0,"call":5,"return":6}`, 0},
	{"one that was read, and then was not", "register", `
		{"operation":"write","token":7,"base":0,"answer":null,"call":1,"return":null}
		{"operation":"read","token":8,"answer":1,"call":5,"return":6}
		{"operation":"read","token":9,"answer":0,"call":7,"return":8}`, 1},
}

func TestExamples(t *testing.T) {
	for _, example := range examples {
		operations, err := read(strings.NewReader(example.lines))
		if err != nil {
			t.Fatalf("%s: %v", example.name, err)
		}
		if code := report(example.kind, kinds[example.kind], operations); code != example.code {
			t.Errorf("%s: %d instead of %d", example.name, code, example.code)
		}
	}
}

func TestWhatIsNoOperationIsAnError(t *testing.T) {
	for _, line := range []string{`{"call":-}`, `{"operation":`, `{"surprise":1}`} {
		if _, err := read(strings.NewReader(line)); err == nil {
			t.Errorf("%s is read", line)
		}
	}
}
