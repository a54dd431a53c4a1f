package instance

// Role is the role of a server.
type Role string

// The roles.
const (
	Master   Role = "master"
	Replica  Role = "replica"
	Sentinel Role = "sentinel"
)

// Member is one server of a target, as it was when the target was opened.
type Member struct {
	// Number counts from 1: masters first, then replicas, then sentinels.
	Number int
	// Addr is its own address, on 127.0.0.1 if we started it.
	Addr string
	Role Role
	// Of is the number of the master that a replica follows at first; 0 for others.
	Of int
}
