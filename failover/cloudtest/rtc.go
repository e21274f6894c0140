package cloudtest

import (
	"bufio"
	"crypto/sha1"
	"encoding/base64"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"math"
	"net"
	"net/http"
	"strings"
)

// isRTC tells the paths of participants' connections.
func isRTC(path string) bool {
	return strings.HasSuffix(path, "/rtc") || strings.Contains(path, "/rtc/")
}

// answerRTC validates a participant's token, and takes the connection if that is what the path is for.
func (h *Host) answerRTC(rep *reply, r *http.Request) {
	claims, err := h.cloud.claims(r)
	switch {
	case err != nil:
		http.Error(rep, err.Error(), http.StatusUnauthorized)
		return
	case claims.Video == nil || !claims.Video.RoomJoin:
		http.Error(rep, permissionsDenied, http.StatusUnauthorized)
		return
	case strings.HasSuffix(r.URL.Path, "/validate"):
		io.WriteString(rep, "success")
		return
	}
	key := r.Header.Get("Sec-WebSocket-Key")
	if key == "" || !strings.EqualFold(r.Header.Get("Upgrade"), "websocket") {
		http.Error(rep, "not a WebSocket request", http.StatusBadRequest)
		return
	}
	rep.status = http.StatusSwitchingProtocols
	rep.header.Set("Upgrade", "websocket")
	rep.header.Set("Connection", "Upgrade")
	rep.header.Set("Sec-WebSocket-Accept", acceptKey(key))
	identity := claims.Identity
	room := claims.Video.Room
	rep.upgrade = func(ex *exchange) {
		conn, rw, err := ex.takeOver()
		if err != nil {
			return
		}
		defer conn.Close()
		join := joined{region: h.region}
		if room != "" && identity != "" {
			var leave func()
			join, leave = h.cloud.state.connect(room, identity, claims.Name, claims.Metadata, h.region)
			defer leave()
		}
		if first, err := join.message(); err == nil && writeFrame(rw, frameBinary, first) == nil {
			serveFrames(rw)
		}
	}
}

// acceptKey is a server's proof that it speaks WebSocket (RFC 6455, section 4.2.2).
func acceptKey(key string) string {
	sum := sha1.Sum([]byte(key + "258EAFA5-E914-47DA-95CA-C5AB0DC85B11"))
	return base64.StdEncoding.EncodeToString(sum[:])
}

// takeOver sends the 101 of a reply that upgrades, and hands over the connection.
func (ex *exchange) takeOver() (net.Conn, *bufio.ReadWriter, error) {
	conn, rw, err := http.NewResponseController(ex.w).Hijack()
	if err != nil {
		return nil, nil, err
	}
	fmt.Fprintf(rw, "HTTP/1.1 %d %s\r\n", ex.rep.status, http.StatusText(ex.rep.status))
	ex.rep.header.Write(rw)
	rw.WriteString("\r\n")
	if err := rw.Flush(); err != nil {
		conn.Close()
		return nil, nil, err
	}
	ex.host.cloud.record.update(func() {
		ex.entry.Status, ex.entry.Answered = ex.rep.status, true
		ex.host.cloud.record.changed.Broadcast()
	})
	return conn, rw, nil
}

// The frames of a WebSocket connection (RFC 6455, section 5.2) that are answered or sent.
const (
	frameBinary = 2
	frameClose  = 8
	framePing   = 9
	framePong   = 10
	maxFrame    = 1 << 20
)

// serveFrames keeps a connection until the client closes it: pings and the closing are answered, all else is read and ignored.
func serveFrames(rw *bufio.ReadWriter) {
	for {
		op, payload, err := readFrame(rw)
		if err != nil {
			return
		}
		if op != framePing && op != frameClose {
			continue
		}
		answer := byte(framePong)
		if op == frameClose {
			answer = frameClose
		}
		if writeFrame(rw, answer, payload) != nil || op == frameClose {
			return
		}
	}
}

// writeFrame sends one message in one frame.
func writeFrame(w *bufio.ReadWriter, op byte, payload []byte) error {
	head := []byte{0x80 | op}
	switch size := len(payload); {
	case size < 126:
		head = append(head, byte(size))
	case size <= math.MaxUint16:
		head = binary.BigEndian.AppendUint16(append(head, 126), uint16(size))
	default:
		head = binary.BigEndian.AppendUint64(append(head, 127), uint64(size))
	}
	w.Write(head)
	w.Write(payload)
	return w.Flush()
}

func readFrame(r io.Reader) (op byte, payload []byte, err error) {
	var head [2]byte
	if _, err := io.ReadFull(r, head[:]); err != nil {
		return 0, nil, err
	}
	op = head[0] & 0x0f
	size := uint64(head[1] & 0x7f)
	switch size {
	case 126:
		var n uint16
		err = binary.Read(r, binary.BigEndian, &n)
		size = uint64(n)
	case 127:
		err = binary.Read(r, binary.BigEndian, &size)
	}
	switch {
	case err != nil:
		return 0, nil, err
	case head[1]&0x80 == 0:
		return 0, nil, errors.New("a client's frame is not masked")
	case size > maxFrame, op >= frameClose && size > 125:
		return 0, nil, errors.New("a frame is too large")
	}
	var mask [4]byte
	if _, err := io.ReadFull(r, mask[:]); err != nil {
		return 0, nil, err
	}
	payload = make([]byte, size)
	if _, err := io.ReadFull(r, payload); err != nil {
		return 0, nil, err
	}
	for i := range payload {
		payload[i] ^= mask[i%4]
	}
	return op, payload, nil
}
