package wire

import (
	"net"

	"golang.org/x/sys/unix"
)

// unsent is how many bytes written to a connection have not arrived yet.
func unsent(conn *net.TCPConn) int {
	raw, err := conn.SyscallConn()
	if err != nil {
		return 0
	}
	n := 0
	raw.Control(func(fd uintptr) { n, err = unix.IoctlGetInt(int(fd), unix.SIOCOUTQ) })
	if err != nil {
		return 0
	}
	return n
}
