package explore

import (
	"strings"

	"oversell/internal/names"
)

// namer is what a search calls its clients' names.
type namer struct {
	naming  names.Naming
	clients int
	seen    *names.Seen
	known   [][]string // if the naming is concrete: the first tokens of each client
}

// knownTokens is how many tokens of a client are recognised when they are concrete.
const knownTokens = 16

func newNamer(n names.Naming, clients int) namer {
	s := namer{naming: n, clients: clients, seen: &names.Seen{}}
	for i := 0; i < clients && n >= names.Concrete; i++ {
		var tokens []string
		for k := range knownTokens {
			tokens = append(tokens, s.scheme(i).Token(k))
		}
		s.known = append(s.known, tokens)
	}
	return s
}

// scheme is that of a client.
func (n *namer) scheme(client int) names.Scheme {
	return names.Scheme{Naming: n.naming, Client: client, Seen: n.seen}
}

// owners are the clients whose names are in text.
func (n *namer) owners(text string) (clients []int) {
	for _, s := range n.found(text) {
		clients = append(clients, s.client)
	}
	return clients
}

// found are the names in text, and whose they are.
func (n *namer) found(text string) []secret {
	all := secretsIn(text)
	for i, tokens := range n.known {
		for _, name := range tokens {
			for range strings.Count(text, name) {
				all = append(all, secret{name: name, client: i})
			}
		}
	}
	return all
}

// nobody is the client number of commands that no client of the search sends.
const nobody = 8

// bookOfNobody has the numbers of whoever is no client.
func (n *namer) bookOfNobody() *names.Book { return n.scheme(nobody).Book(0) }

// outsider is the n-th token of whoever is no client.
func (n *namer) outsider(number int) string {
	return global(n.scheme(nobody).Token(number), nobody)
}
