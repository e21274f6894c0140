package cloudtest_test

import (
	"bufio"
	"crypto/tls"
	"errors"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"

	"github.com/lkrpc/lkrpc/auth"
	"github.com/lkrpc/lkrpc/failover/cloudtest"
	"github.com/lkrpc/lkrpc/proto/livekit"
	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/proto"
)

// upgrade asks for a participant's connection, over the client's connection pool.
func (u *user) upgrade(h *cloudtest.Host) (*http.Response, error) {
	r, err := http.NewRequest("GET", h.URL()+"/rtc?access_token="+u.token, nil)
	if err != nil {
		u.t.Fatal(err)
	}
	r.Header.Set("Connection", "Upgrade")
	r.Header.Set("Upgrade", "websocket")
	r.Header.Set("Sec-WebSocket-Version", "13")
	r.Header.Set("Sec-WebSocket-Key", "dGhlIHNhbXBsZSBub25jZQ==")
	return u.tr.RoundTrip(r) // without the Authorization header, as browsers do
}

// frame is a client's frame, masked with zeros.
func frame(op byte, payload string) []byte {
	return append([]byte{0x80 | op, 0x80 | byte(len(payload)), 0, 0, 0, 0}, payload...)
}

// serverFrame reads a frame of the server's.
func serverFrame(t *testing.T, r io.Reader) (op byte, payload []byte) {
	t.Helper()
	head := make([]byte, 2, 4)
	if _, err := io.ReadFull(r, head); err != nil {
		t.Fatalf("reading a frame: %v", err)
	}
	size := int(head[1])
	if size == 126 {
		head = head[:4]
		io.ReadFull(r, head[2:])
		size = int(head[2])<<8 | int(head[3])
	}
	payload = make([]byte, size)
	if _, err := io.ReadFull(r, payload); err != nil {
		t.Fatalf("reading a frame of %d bytes: %v", size, err)
	}
	return head[0], payload
}

// joinOf reads the first message of a connection, a SignalResponse with a JoinResponse, and returns the fields of that.
func joinOf(t *testing.T, r io.Reader) map[protowire.Number][][]byte {
	t.Helper()
	op, payload := serverFrame(t, r)
	signal := fieldsOf(t, payload)
	if op != 0x82 || len(signal) != 1 || len(signal[1]) != 1 {
		t.Fatalf("the first frame is %x with fields %v, want a join", op, signal)
	}
	return fieldsOf(t, signal[1][0])
}

// fieldsOf reads a message that has nothing but messages and texts.
func fieldsOf(t *testing.T, b []byte) map[protowire.Number][][]byte {
	t.Helper()
	fields := map[protowire.Number][][]byte{}
	for len(b) > 0 {
		field, kind, n := protowire.ConsumeTag(b)
		if n < 0 || kind != protowire.BytesType {
			t.Fatalf("no message: %x", b)
		}
		value, m := protowire.ConsumeBytes(b[n:])
		if m < 0 {
			t.Fatalf("no message: %x", b)
		}
		fields[field] = append(fields[field], value)
		b = b[n+m:]
	}
	return fields
}

// The first message tells who connects of the room, itself and those who are there.
func TestJoin(t *testing.T) {
	inEach(t, func(t *testing.T, u *user) {
		long := strings.Repeat("metadata ", 100)
		for _, identity := range []string{"first", "second"} {
			if err := u.AddParticipant("room", &livekit.ParticipantInfo{Identity: identity, Metadata: long}); err != nil {
				t.Fatal(err)
			}
		}
		resp, err := u.upgrade(u.Region(1))
		if err != nil {
			t.Fatal(err)
		}
		defer resp.Body.Close()
		join := joinOf(t, resp.Body)
		var room livekit.Room
		var me, first, second livekit.ParticipantInfo
		for i, m := range []proto.Message{&room, &me, &first, &second} {
			if err := proto.Unmarshal(join[[]protowire.Number{1, 2, 3, 3}[i]][max(0, i-2)], m); err != nil {
				t.Fatal(err)
			}
		}
		if room.GetName() != "room" || room.GetNumParticipants() != 3 || !strings.HasPrefix(room.GetSid(), "RM_") {
			t.Errorf("the room: %v", &room)
		}
		if me.GetIdentity() != "me" || first.GetIdentity() != "first" || second.GetIdentity() != "second" || second.GetMetadata() != long {
			t.Errorf("the participants: %v; %v, %v", &me, &first, &second)
		}
		if region := join[9]; len(join[3]) != 2 || len(region) != 1 || string(region[0]) != u.Region(1).RegionName() {
			t.Errorf("%d others, region %q", len(join[3]), region)
		}
	})
}

// A token without a room joins none.
func TestJoinNowhere(t *testing.T) {
	u := newUser(t, start(t))
	u.token = u.tokenFor(&auth.ClaimGrants{Identity: "me", Video: &auth.VideoGrant{RoomJoin: true}})
	resp, err := u.upgrade(u.Region(0))
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	if join := joinOf(t, resp.Body); len(join) != 1 || len(join[9]) != 1 {
		t.Errorf("the join has the fields %v, want the region alone", join)
	}
}

func (u *user) participants() int {
	list, err := u.rooms(u.Region(1)).ListParticipants(background, &livekit.ListParticipantsRequest{Room: "room"})
	if err != nil {
		u.t.Fatal(err)
	}
	return len(list.GetParticipants())
}

func TestConnection(t *testing.T) {
	inEach(t, func(t *testing.T, u *user) {
		resp, err := u.upgrade(u.Region(0))
		if err != nil {
			t.Fatal(err)
		}
		// The key and its answer are the example of RFC 6455, section 1.3.
		if resp.StatusCode != 101 || resp.Header.Get("Sec-WebSocket-Accept") != "s3pPLMBiTxaQ9kYGzzhZRbK+xOo=" {
			t.Fatalf("got %s, %v", resp.Status, resp.Header)
		}
		conn := resp.Body.(io.ReadWriteCloser)
		defer conn.Close()
		eventually(t, "the participant is in the room", func() bool { return u.participants() == 1 })
		if q := u.Requests()[0]; q.Status != 101 || !q.Answered || q.Path != "/rtc" || !q.Token {
			t.Errorf("recorded: %+v", q)
		}
		joinOf(t, conn)
		conn.Write(frame(2, "ignored"))
		conn.Write(frame(9, "are you there"))
		answer := make([]byte, 2+len("are you there"))
		if _, err := io.ReadFull(conn, answer); err != nil || answer[0] != 0x8a || string(answer[2:]) != "are you there" {
			t.Errorf("the pong: %q, %v", answer, err)
		}
		conn.Write(frame(8, "\x03\xe8"))
		if rest, err := io.ReadAll(conn); string(rest) != "\x88\x02\x03\xe8" {
			t.Errorf("the end: %q, %v", rest, err)
		}
		eventually(t, "the participant is gone", func() bool { return u.participants() == 0 })
	})
}

func TestConnectionRefused(t *testing.T) {
	u := newUser(t, start(t, cloudtest.HTTP1()))
	home := u.URL
	stranger, guest := *u, *u
	stranger.token = "x"
	guest.token = u.tokenFor(&auth.ClaimGrants{Identity: "guest", Video: &auth.VideoGrant{Room: "room", RoomList: true}})
	for name, test := range map[string]struct {
		u      *user
		path   string
		status int
		body   string
	}{
		"validated":        {u, "/rtc/v1/validate", 200, "success"},
		"a bad token":      {&stranger, "/rtc/validate", 401, "invalid token"},
		"may not join":     {&guest, "/rtc/validate", 401, "permissions denied"},
		"may not connect":  {&guest, "/rtc", 401, "permissions denied"},
		"no WebSocket":     {u, "/rtc", 400, "not a WebSocket request"},
		"no such RTC path": {u, "/rtcx", 404, ""},
	} {
		if a := test.u.get(background, home+test.path); a.status != test.status || !strings.Contains(a.body, test.body) {
			t.Errorf("%s: %+v", name, a)
		}
	}
}

// Faults on RTC paths do what they do elsewhere.
func TestConnectionFaults(t *testing.T) {
	inEach(t, func(t *testing.T, u *user) {
		h := u.Region(0)
		h.Break(cloudtest.Status(503, nil, "busy"), cloudtest.On(cloudtest.RTC), cloudtest.Times(1))
		if resp, err := u.upgrade(h); err != nil || resp.StatusCode != 503 {
			t.Errorf("status: %v, %v", resp, err)
		} else {
			resp.Body.Close()
		}
		h.Break(cloudtest.Drop(), cloudtest.On(cloudtest.RTC), cloudtest.Times(1))
		if resp, err := u.upgrade(h); err == nil {
			t.Errorf("drop: %s", resp.Status)
		}
		h.Break(cloudtest.Truncate(), cloudtest.On(cloudtest.RTC), cloudtest.Times(1))
		if resp, err := u.upgrade(h); err != nil || resp.StatusCode != 101 {
			t.Errorf("truncate: %v, %v", resp, err)
		} else {
			if rest, _ := io.ReadAll(resp.Body); len(rest) != 0 {
				t.Errorf("truncate: then %q", rest)
			}
			resp.Body.Close()
		}
		resp, err := u.upgrade(h)
		if err != nil || resp.StatusCode != 101 {
			t.Fatalf("without a fault: %v, %v", resp, err)
		}
		defer resp.Body.Close()
		joinOf(t, resp.Body)
		h.Refuse() // a connection that was taken over is cut as well
		if _, err := resp.Body.Read(make([]byte, 1)); err == nil {
			t.Error("the connection goes on")
		}
	})
}

// What is no frame of a client's ends the connection and nothing else.
func TestBadFrames(t *testing.T) {
	u := newUser(t, start(t))
	for name, bytes := range map[string]string{
		"not masked":      "\x82\x01x",
		"a long ping":     "\x89\xfe\x01\x00\x00\x00\x00\x00",
		"a huge frame":    "\x82\xff\x7f\xff\xff\xff\xff\xff\xff\xff\x00\x00\x00\x00",
		"a 16-bit length": "\x82\xfe\x00\x01\x00\x00\x00\x00x\x88\x80\x00\x00\x00\x00",
		"a 64-bit length": "\x82\xff\x00\x00\x00\x00\x00\x00\x00\x01\x00\x00\x00\x00x\x88\x80\x00\x00\x00\x00",
	} {
		resp, err := u.upgrade(u.Region(0))
		if err != nil {
			t.Fatal(err)
		}
		joinOf(t, resp.Body)
		io.WriteString(resp.Body.(io.Writer), bytes)
		rest, err := io.ReadAll(resp.Body)
		if strings.Contains(name, "length") != (string(rest) == "\x88\x00") || errors.Is(err, net.ErrClosed) {
			t.Errorf("%s: answered %q, %v", name, rest, err)
		}
		resp.Body.Close()
	}
	u.list(u.Region(0))
}

// DialContext and TLSConfig serve libraries that bring their own HTTP.
func TestDialContext(t *testing.T) {
	inEach(t, func(t *testing.T, u *user) {
		h := u.Region(0)
		if !strings.HasPrefix(h.URL(), "https") {
			return
		}
		raw, err := u.DialContext(background, "tcp", h.Name()+":443")
		if err != nil {
			t.Fatal(err)
		}
		cfg := u.TLSConfig()
		cfg.ServerName = h.Name()
		conn := tls.Client(raw, cfg)
		defer conn.Close()
		io.WriteString(conn, "GET / HTTP/1.1\r\nHost: "+h.Name()+"\r\nConnection: close\r\n\r\n")
		resp, err := http.ReadResponse(bufio.NewReader(conn), nil)
		if err != nil || resp.StatusCode != 200 {
			t.Errorf("got %v, %v", resp, err)
		}
		cfg.ServerName = u.Region(1).Name()
		raw, err = u.DialContext(background, "tcp", h.Name()+":443")
		if err != nil {
			t.Fatal(err)
		}
		defer raw.Close()
		if err := tls.Client(raw, cfg).Handshake(); err == nil {
			t.Error("the certificate holds for another region")
		}
	})
}
