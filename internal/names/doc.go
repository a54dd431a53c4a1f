// Package names finds opaque values in a program's output: tokens that the program was given, and values that it drew
// at random. They are called names here, because their spelling means nothing.
//
// A search runs the same code many times and compares the outputs. That is possible only if each run's own spelling of
// the names is replaced by one that is the same for all runs, the canonical one. A [Scheme] says what canonical names
// look like, a [Dictionary] holds the spelling of one run, and [Settle] compares runs that were given different tokens.
// If they differ in more than the tokens, it finds out why: the program drew a value at random, which is a name from
// then on, or it does more with a name than pass it on and compare it, or it is not deterministic.
package names
