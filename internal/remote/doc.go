// Package remote runs programs in other languages one step at a time. A library that is
// preloaded into a program sends what it reads from its clocks and how long it sleeps to
// the caller, who answers; the program's connections lead to the caller, too, who answers
// each command when it wants to. Between two answers a process does nothing that others could notice, so the
// caller decides the order in which several of them act.
//
// A [Stage] starts one program in as many processes as are wanted. Each is a new one. A
// program that has one thread and no connection when it first reads its input is
// started only twice and forked for each process, which takes about a millisecond; others are
// started for each process. It works on Linux, where a C compiler is installed, and with programs that
// use the shared C library.
package remote
