// Checks a recorded run with Porcupine, which searches for an order of the operations that the model allows and that agrees with real time:
//
//	checker lock|register FILE
//
// FILE has a JSON object in each line; tests/stress/src/operations.rs says what they mean. The checker says what it found for each object, and
// exits with 0 if there is an order for each, with 1 if there is none for at least one, and with 2 if it could not find out.
package main

import (
	"encoding/json"
	"fmt"
	"io"
	"math"
	"os"
	"sort"
	"time"

	"github.com/anishathalye/porcupine"
)

// How long the search may take for each object.
const patience = 25 * time.Second

// A line of the file.
type operation struct {
	Client    string
	Object    string
	Operation string
	Token     *uint64
	Base      uint64
	Answer    *uint64
	Call      int64
	Return    *int64
}

func main() {
	if len(os.Args) != 3 {
		fail("usage: checker lock|register FILE")
	}
	kind, known := kinds[os.Args[1]]
	if !known {
		fail("there is no model of a %s", os.Args[1])
	}
	file, err := os.Open(os.Args[2])
	if err != nil {
		fail("%v", err)
	}
	operations, err := read(file)
	if err != nil {
		fail("%s: %v", os.Args[2], err)
	}
	os.Exit(report(os.Args[1], kind, operations))
}

// Says what is true of each object. Returns the exit code.
func report(name string, kind kind, operations []operation) int {
	code := 0
	for _, object := range kind.objects(operations) {
		begun := time.Now()
		result := porcupine.CheckOperationsTimeout(kind.model, object.history, patience)
		fmt.Printf("%s %s: %d operations, %d of them without a return: %s in %v\n", name, object.name, len(object.history), object.unknown,
			result, time.Since(begun).Round(time.Millisecond))
		switch {
		case result == porcupine.Unknown:
			code = 2
		case result == porcupine.Illegal && code == 0:
			code = 1
		}
	}
	return code
}

func read(file io.Reader) ([]operation, error) {
	var operations []operation
	lines := json.NewDecoder(file)
	lines.DisallowUnknownFields()
	for {
		var next operation
		err := lines.Decode(&next)
		if err == io.EOF {
			return operations, nil
		}
		if err != nil {
			return nil, fmt.Errorf("after %d operations: %w", len(operations), err)
		}
		operations = append(operations, next)
	}
}

// The history of a lock, or of a number in the register.
type object struct {
	name    string
	history []porcupine.Operation
	unknown int
}

// The objects of a kind, each with the operations that its model knows. The file has both kinds, which may have the same names.
func (kind kind) objects(operations []operation) []object {
	byName := make(map[string]*object)
	for _, operation := range operations {
		if !kind.has(operation) {
			continue
		}
		of := byName[operation.Object]
		if of == nil {
			of = &object{name: operation.Object}
			byName[operation.Object] = of
		}
		// What may have taken effect at any time, or never, may come after everything else.
		end := int64(math.MaxInt64)
		if operation.Return != nil {
			end = *operation.Return
		} else {
			of.unknown++
		}
		of.history = append(of.history, porcupine.Operation{Input: operation, Call: operation.Call, Return: end})
	}
	objects := make([]object, 0, len(byName))
	for _, of := range byName {
		objects = append(objects, *of)
	}
	sort.Slice(objects, func(one, other int) bool { return objects[one].name < objects[other].name })
	return objects
}

func fail(format string, arguments ...any) {
	fmt.Fprintf(os.Stderr, format+"\n", arguments...)
	os.Exit(2)
}
