package lockimpl

import "oversell/variant"

// tokenDel is the first mistake in [variant.TextScripts]: a unique token, and a release by DEL that does not read it.
// Extending, which the text does not print, does not read it either.
type tokenDel struct {
	token
	blind
}

func newTokenDel(env variant.Env) Locker { return tokenDel{token{env}, blind{env}} }
