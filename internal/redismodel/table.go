package redismodel

import "oversell/internal/rediscmd"

// table holds every command that the model knows, by its name in small letters.
var table = commandTable(
	keyCommands, stringCommands, hashCommands, zsetCommands, listCommands, setCommands, streamCommands, scriptCommands,
)

func commandTable(groups ...[]command) map[string]*command {
	all := map[string]*command{}
	for _, g := range groups {
		for i := range g {
			c := &g[i]
			c.Command, _ = rediscmd.Find(c.name)
			all[c.name] = c
		}
	}
	return all
}
