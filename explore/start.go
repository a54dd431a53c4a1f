package explore

import (
	"errors"
	"fmt"
	"net"

	"oversell/explore/clients"
	"oversell/history"
	"oversell/internal/coro"
	"oversell/internal/names"
	"oversell/internal/phrase"
)

// execution starts the code of a client.
func (c *Config) execution(who Who, book *names.Dictionary, scripts *coro.Scripts) Execution {
	if c.Start != nil {
		return c.Start(who)
	}
	return coro.Start(clients.ProgramOf(c.Run, who.Index, c.Bounds, book, c.stopped, c.noteFailure), coro.Options{Masters: c.Masters, Epoch: Epoch, Token: book.Token, Number: book.Number(names.ClientNumber), Scripts: scripts})
}

// noteFailure remembers the first error of a call, unless it tells of a lock that is held, or of a lost message.
func (c *Config) noteFailure(op history.Op, err error) {
	network := net.Error(nil)
	if c.failure == nil || op.Reason == history.Held || errors.As(err, &network) {
		return
	}
	why := fmt.Sprintf("%s failed: %s", op.Kind, phrase.OneLine(err.Error()))
	c.failure.CompareAndSwap(nil, &why)
}

// begin starts the code of a client that the search does not step: its numbers are canonical in every naming.
func (c *Config) begin(who Who, book *names.Dictionary, scripts *coro.Scripts) Execution {
	if c.Start != nil {
		return c.Start(who)
	}
	return coro.Start(clients.Program(c.Run, who.Index, c.Bounds), coro.Options{Masters: c.Masters, Epoch: Epoch, Token: book.Token, Number: names.OwnNumber(names.ClientNumber), Scripts: scripts})
}
