// Package table holds the tables that the workers of a search share.
//
// A search visits millions of states and asks the same questions about them again and again.
// So each part of a state is stored once and has a number ([Interner]), the answer to a
// question about numbers is computed once ([Memo]), and a visited state is kept as a fingerprint and its predecessor
// ([Visited]). Entries are read without a lock.
package table
