package main

import "github.com/anishathalye/porcupine"

// What operations an object has, and what they do to it.
type kind struct {
	has   func(operation) bool
	model porcupine.Model
}

var kinds = map[string]kind{
	"lock":     {isOfLock, model(lock.step)},
	"register": {isOfRegister, model(register.step)},
}

// A lock lends itself to one holder at a time, and each token is higher than all before.
//
// Leases expire, so there is no operation of the holder that ends its turn in any case. What can be observed is until when its guard said that it
// held: "end" may happen at any time after that, whatever ends the lease. A history that has an order proves that no two turns overlapped, as
// far as their guards said that they held, and that tokens rose from turn to turn. It does not prove that a lease ends early enough, or that
// anybody is ever served.
type lock struct {
	token uint64
	held  bool
}

func (was lock) step(does operation) (bool, lock) {
	if does.Operation == "acquire" {
		return !was.held && *does.Token > was.token, lock{*does.Token, true}
	}
	return was.held && *does.Token == was.token, lock{was.token, false}
}

// A wait without a turn is left out, and so is one that was cut short. A lease that nobody knew of shows in nothing but the next token,
// which may be any higher one.
func isOfLock(does operation) bool {
	return does.Operation == "end" || does.Operation == "acquire" && does.Token != nil
}

// A register refuses requests with a token below one that it has seen. Others read the last number that was written, or write the one after it.
//
// A history that has an order proves that no late write was taken, that reads were never stale, and that no update was lost: each accepted
// write was based on the one before it. It holds no matter who has the locks.
type register struct {
	token uint64
	value uint64
}

func (was register) step(asks operation) (bool, register) {
	takes, then := *asks.Token >= was.token, was
	if takes {
		then.token = *asks.Token
	}
	if takes && asks.Operation == "write" {
		then.value = asks.Base + 1
	}
	switch {
	case asks.Return == nil:
		return true, then
	case asks.Answer == nil:
		return !takes, was
	case asks.Operation == "write":
		return takes && asks.Base == was.value && *asks.Answer == then.value, then
	default:
		return takes && *asks.Answer == was.value, then
	}
}

func isOfRegister(asks operation) bool {
	return asks.Operation == "read" || asks.Operation == "write"
}

func model[S comparable](step func(S, operation) (bool, S)) porcupine.Model {
	return porcupine.Model{
		Init: func() any {
			var first S
			return first
		},
		Step: func(state any, input any, _ any) (bool, any) { return step(state.(S), input.(operation)) },
	}
}
