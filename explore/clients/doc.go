// Package clients runs the code of the clients of a search and learns its behaviour.
//
// The next step of a deterministic client depends only on the list of its observations:
// answers, errors, readings of the clock. A [Trie] holds the lists for clients of one role,
// and each list is a [Node]. To learn a new list, the trie runs the code alone, as a
// coroutine, and shows it the observations one by one. From then on the search works with
// the number of the node.
//
// Two lists are merged if the client must do the same after both: its objects hold the same
// at the end of a round, or its threads made the same observations in another order. Each
// list is executed with several spellings of the names in it, to check that names mean
// nothing to the program. A client that is about to read the clock is run at several times,
// to find the instant from which it behaves differently.
package clients
