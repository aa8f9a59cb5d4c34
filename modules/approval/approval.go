// Package approval is the contract for asking somebody with authority whether one action may go ahead.
//
// The vocabulary of answers is closed, and every way of not getting one is a refusal: what cannot be asked, was asked in
// vain, or came back in words that nobody knows, is not allowed. An answer covers the one action that was asked about.
//
// Package approvaltest holds the suite that every service passes.
package approval

import (
	"context"

	"dsh/module/key"
)

// Key names the capability.
var Key = key.Of[Service]("approval")

// Service asks for approval. Its methods may be called concurrently; what a person has to answer comes one at a time.
type Service interface {
	// Ask returns the decision on one action. It waits for as long as the context lasts; when that has ended, even before
	// the question, the outcome is Cancelled, and an answer that comes later is discarded. It always returns an outcome of
	// the vocabulary.
	Ask(ctx context.Context, r Request) Outcome
}

// Request is a question about one action.
type Request struct {
	SessionID string // empty outside of a session
	Tool      string // the tool that would act
	CallID    string
	Reason    string // what is asked for, in one sentence
	Detail    string // what exactly would be done, such as the command
}

// Outcome is a decision.
type Outcome string

// The outcomes. Only AllowedOnce permits anything.
const (
	AllowedOnce Outcome = "allowed-once"
	Rejected    Outcome = "rejected"
	Cancelled   Outcome = "cancelled"
	Unavailable Outcome = "unavailable" // nobody could be asked
)

// Closed returns o, or Unavailable if o is none of the outcomes.
func (o Outcome) Closed() Outcome {
	switch o {
	case AllowedOnce, Rejected, Cancelled, Unavailable:
		return o
	}
	return Unavailable
}

// Decide asks s, and fails closed: without a service, and when it panics or answers outside of the vocabulary, the outcome
// is Unavailable; when ctx has ended it is Cancelled, whatever was answered.
func Decide(ctx context.Context, s Service, r Request) (o Outcome) {
	if ctx.Err() != nil {
		return Cancelled
	}
	if s == nil {
		return Unavailable
	}
	defer func() {
		if recover() != nil {
			o = Unavailable
		}
		if ctx.Err() != nil {
			o = Cancelled
		}
	}()
	return s.Ask(ctx, r).Closed()
}
