package explore

import (
	"oversell/explore/clients"
	"oversell/internal/coro"
	"oversell/internal/names"
)

// execution starts the code of a client.
func (c *Config) execution(who Who, book *names.Book, scripts *coro.Scripts) Execution {
	if c.Start != nil {
		return c.Start(who)
	}
	return coro.Start(clients.ProgramOf(c.Run, who.Index, c.Bounds, book, c.stopped), coro.Options{Masters: c.Masters, Epoch: Epoch, Token: book.Token, Number: book.Number(names.ClientNumber), Scripts: scripts})
}

// begin starts the code of a client that the search does not step: its numbers are canonical in every naming.
func (c *Config) begin(who Who, book *names.Book, scripts *coro.Scripts) Execution {
	if c.Start != nil {
		return c.Start(who)
	}
	return coro.Start(clients.Program(c.Run, who.Index, c.Bounds), coro.Options{Masters: c.Masters, Epoch: Epoch, Token: book.Token, Number: names.OwnNumber(names.ClientNumber), Scripts: scripts})
}
