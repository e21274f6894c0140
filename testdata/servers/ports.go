package servers

import (
	"fmt"
	"io"
	"net"
	"strconv"
)

const loopback = "127.0.0.1"

func localURL(port int) string {
	return "http://" + net.JoinHostPort(loopback, strconv.Itoa(port))
}

// freePorts chooses a free loopback port for each network, all different. They are free when it looks: another process can
// take one before the server has it.
func freePorts(networks []string) ([]int, error) {
	ports := make([]int, len(networks))
	for i, network := range networks {
		port, hold, err := holdPort(network)
		if err != nil {
			return nil, err
		}
		defer hold.Close() // at the end: what is held is not chosen again
		ports[i] = port
	}
	return ports, nil
}

func holdPort(network string) (int, io.Closer, error) {
	any := net.JoinHostPort(loopback, "0")
	switch network {
	case "tcp":
		l, err := net.Listen("tcp", any)
		if err != nil {
			return 0, nil, err
		}
		return l.Addr().(*net.TCPAddr).Port, l, nil
	case "udp":
		c, err := net.ListenPacket("udp", any)
		if err != nil {
			return 0, nil, err
		}
		return c.LocalAddr().(*net.UDPAddr).Port, c, nil
	}
	return 0, nil, fmt.Errorf("unknown network %q", network)
}
