// Locks with etcd's own client for Go, as its arguments say:
//
//	peer hold ENDPOINT TTL mutex|read|write KEY
//	peer turns ENDPOINT TTL MILLIS FILE KEY...
//
// hold says "acquired" once it holds the lock, and "session ended" when its session does. It reads "owner", which is answered by "owner true" or
// "owner false", and "release", which is answered by "released" or "failed WHY". When its input ends, it closes its session and ends.
//
// turns says "ready", waits for a line, and takes the mutex of each key again and again, each in a session of its own: mutexes of one session do
// not exclude each other. Then it says "done". FILE has a line for each turn: the number of the key, and when the lock was wanted, acquired,
// about to be released, and released.
package main

import (
	"bufio"
	"context"
	"fmt"
	"os"
	"strconv"
	"sync"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"
	"go.etcd.io/etcd/client/v3/concurrency"
	recipe "go.etcd.io/etcd/client/v3/experimental/recipes"
)

// A lock that is held or wanted.
type lock struct {
	acquire func() error
	release func() error
	isOwner func() (bool, error)
}

var (
	background = context.Background()
	started    = time.Now()
	said       sync.Mutex
)

func main() {
	kind, endpoint, rest := os.Args[1], os.Args[2], os.Args[4:]
	ttl := must(strconv.Atoi(os.Args[3]))
	client := must(clientv3.New(clientv3.Config{Endpoints: []string{endpoint}, DialTimeout: 10 * time.Second}))
	lines := bufio.NewScanner(os.Stdin)
	open := func() *concurrency.Session { return must(concurrency.NewSession(client, concurrency.WithTTL(ttl))) }
	switch kind {
	case "hold":
		hold(client, open(), rest[0], rest[1], lines)
	case "turns":
		turns(open, must(strconv.Atoi(rest[0])), rest[1], rest[2:], lines)
	}
}

func hold(client *clientv3.Client, session *concurrency.Session, kind string, key string, lines *bufio.Scanner) {
	lock := named(client, session, kind, key)
	go func() {
		<-session.Done()
		say("session ended")
	}()
	go func() { answer(lock.acquire(), "acquired") }()
	for lines.Scan() {
		switch lines.Text() {
		case "owner":
			is, err := lock.isOwner()
			answer(err, fmt.Sprint("owner ", is))
		case "release":
			answer(lock.release(), "released")
		}
	}
	session.Close()
}

func named(client *clientv3.Client, session *concurrency.Session, kind string, key string) lock {
	if kind != "mutex" {
		both := recipe.NewRWMutex(session, key)
		unknown := func() (bool, error) { return false, fmt.Errorf("an RWMutex cannot say") }
		if kind == "read" {
			return lock{both.RLock, both.RUnlock, unknown}
		}
		return lock{both.Lock, both.Unlock, unknown}
	}
	mutex := concurrency.NewMutex(session, key)
	isOwner := func() (bool, error) {
		told, err := client.Txn(background).If(mutex.IsOwner()).Commit()
		return err == nil && told.Succeeded, err
	}
	acquire := func() error { return mutex.Lock(background) }
	return lock{acquire, func() error { return mutex.Unlock(background) }, isOwner}
}

func turns(open func() *concurrency.Session, millis int, file string, keys []string, lines *bufio.Scanner) {
	all := make([][][4]int64, len(keys))
	var mutexes []*concurrency.Mutex
	for _, key := range keys {
		mutexes = append(mutexes, concurrency.NewMutex(open(), key))
	}
	say("ready")
	lines.Scan()
	until := now() + int64(millis)*int64(time.Millisecond)
	var running sync.WaitGroup
	for number, mutex := range mutexes {
		running.Go(func() {
			for wanted := now(); wanted < until; wanted = now() {
				check(mutex.Lock(background))
				acquired := now()
				// As in other measured loops, nothing is done meanwhile.
				leaving := now()
				check(mutex.Unlock(background))
				all[number] = append(all[number], [4]int64{wanted, acquired, leaving, now()})
			}
		})
	}
	running.Wait()
	out := must(os.Create(file))
	written := bufio.NewWriter(out)
	for number, turns := range all {
		for _, turn := range turns {
			fmt.Fprintln(written, number, turn[0], turn[1], turn[2], turn[3])
		}
	}
	check(written.Flush())
	check(out.Close())
	say("done")
}

// The time in nanoseconds, which processes of this program can compare, and which no change of the clock disturbs.
func now() int64 {
	return started.UnixNano() + int64(time.Since(started))
}

func answer(err error, done string) {
	if err != nil {
		done = "failed " + err.Error()
	}
	say(done)
}

func say(line string) {
	said.Lock()
	defer said.Unlock()
	fmt.Println(line)
}

func must[T any](value T, err error) T {
	check(err)
	return value
}

func check(err error) {
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}
