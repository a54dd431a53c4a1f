package names

import "strings"

// Namer gives names to the clients of a search.
type Namer struct {
	Naming  Naming
	clients int
	seen    *Seen
	known   [][]string // if the naming is concrete: the first tokens of each client
}

// knownTokens is how many concrete tokens of a client are recognized.
const knownTokens = 16

// NewNamer returns a Namer for so many clients.
func NewNamer(n Naming, clients int) Namer {
	s := Namer{Naming: n, clients: clients, seen: &Seen{}}
	for i := 0; i < clients && n >= Concrete; i++ {
		var tokens []string
		for k := range knownTokens {
			tokens = append(tokens, s.Scheme(i).Token(k))
		}
		s.known = append(s.known, tokens)
	}
	return s
}

// Scheme returns the scheme of a client.
func (n *Namer) Scheme(client int) Scheme {
	s := Scheme{Naming: n.Naming, Client: client, Clients: n.clients, Seen: n.seen}
	if client < len(n.known) {
		s.known = &n.known[client]
	}
	return s
}

// Local is text in the names of client. If the naming is concrete, all clients have the same.
func (n *Namer) Local(text string, client int) string {
	if n.Naming >= Concrete {
		return text
	}
	return Local(text, client)
}

// Owners returns the clients whose names are in text.
func (n *Namer) Owners(text string) (clients []int) {
	for _, s := range n.Found(text) {
		clients = append(clients, s.Client)
	}
	return clients
}

// Found returns the names in text and their owners.
func (n *Namer) Found(text string) (all []Secret) {
	if n.Naming < Concrete {
		return SecretsIn(text)
	}
	for i, tokens := range n.known {
		for _, name := range tokens {
			for range strings.Count(text, name) {
				all = append(all, Secret{Name: name, Client: i})
			}
		}
	}
	return all
}

// Nobody is the client number of commands that no client of the search sends.
const Nobody = 8

// DictionaryOfNobody returns the dictionary of the names that callers draw which are not clients, such as the administrator.
func (n *Namer) DictionaryOfNobody() *Dictionary { return n.Scheme(Nobody).Dictionary(0) }

// Outsider returns the n-th token of all who are not clients.
func (n *Namer) Outsider(number int) string {
	return Global(n.Scheme(Nobody).Token(number), Nobody)
}
