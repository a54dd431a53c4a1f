// Package remote runs programs in other languages one step at a time. A library that is preloaded into a program sends
// its clock readings and sleeps to the caller, which answers; the program's connections also lead to the caller, which
// answers each command at a time of its choice. Between two answers a process does nothing that others could notice, so
// the caller decides the order in which several of them act.
//
// A [Stage] runs one program in any number of new processes. A program with one thread and no connection when it first
// reads its input is started only twice and forked for each process, which takes about a millisecond; others are
// started for each process. It needs Linux, a C compiler, and programs that use the shared C library.
package remote
