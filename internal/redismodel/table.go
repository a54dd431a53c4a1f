package redismodel

// table is every command that the model knows, by its name in small letters.
var table = commandTable(
	keyCommands, stringCommands, hashCommands, zsetCommands, listCommands, setCommands, streamCommands, scriptCommands,
)

func commandTable(groups ...[]command) map[string]*command {
	all := map[string]*command{}
	for _, g := range groups {
		for i := range g {
			all[g[i].name] = &g[i]
		}
	}
	return all
}
