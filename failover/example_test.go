package failover_test

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"

	"github.com/lkrpc/lkrpc/auth"
	"github.com/lkrpc/lkrpc/failover"
	"github.com/lkrpc/lkrpc/failover/cloudtest"
)

// Two servers of one's own, the first of which is down for maintenance. A LiveKit Cloud project needs no option: its regions are
// known.
func ExampleNew() {
	down := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		http.Error(w, "maintenance", http.StatusServiceUnavailable)
	}))
	defer down.Close()
	up := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		io.WriteString(w, `{"rooms":[{"name":"studio"}]}`)
	}))
	defer up.Close()

	t, err := failover.New(nil, failover.Origins(down.URL, up.URL))
	if err != nil {
		log.Fatal(err)
	}
	defer t.Close()
	client := &http.Client{Transport: t}

	ctx := failover.WithCall(context.Background(), &failover.Call{Repeat: failover.Safe}) // a list may be asked for twice
	listRooms := down.URL + "/twirp/livekit.RoomService/ListRooms"
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, listRooms, strings.NewReader("{}"))
	if err != nil {
		log.Fatal(err)
	}
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set("Authorization", "Bearer "+token)
	resp, err := client.Do(req)
	if err != nil {
		log.Fatal(err)
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	fmt.Println(resp.StatusCode, string(body), err)
	// Output: 200 {"rooms":[{"name":"studio"}]} <nil>
}

// A participant's connection goes to the next region when one is ill. What dial does, a WebSocket library does in a program: the
// package documentation has the code for two.
func ExampleTransport_Connect() {
	cloud, t, token := exampleCloud() // of a project of your own: failover.New(nil)
	defer cloud.Close()
	defer t.Close()
	cloud.Region(0).Break(cloudtest.Status(503, nil, "maintenance"), cloudtest.On(cloudtest.RTC))

	client := &http.Client{Transport: cloud.Transport()} // not t, which would try all regions in each attempt
	var conn io.ReadWriteCloser
	err := t.Connect(context.Background(), cloud.URL, token, func(ctx context.Context, serverURL string) error {
		fmt.Println("dialling", serverURL)
		req, err := http.NewRequestWithContext(ctx, http.MethodGet, serverURL+"/rtc", nil)
		if err != nil {
			return err
		}
		req.Header = http.Header{"Authorization": {"Bearer " + token}, "Connection": {"Upgrade"}, "Upgrade": {"websocket"},
			"Sec-Websocket-Version": {"13"}, "Sec-Websocket-Key": {"AAECAwQFBgcICQoLDA0ODw=="}}
		resp, err := client.Do(req)
		if err != nil {
			return err
		}
		if resp.StatusCode != http.StatusSwitchingProtocols {
			resp.Body.Close()
			return &failover.StatusError{Code: resp.StatusCode}
		}
		conn = resp.Body.(io.ReadWriteCloser)
		return nil
	})
	if err != nil {
		log.Fatal(err)
	}
	defer conn.Close()
	fmt.Println("connected")
	// Output:
	// dialling https://demo.livekit.cloud
	// dialling https://demo.frankfurt.production.livekit.cloud
	// connected
}

// Before a participant joins, while the page loads, say, the region list is read: the connection then begins at its first region.
func ExampleTransport_Prepare() {
	cloud, t, token := exampleCloud()
	defer cloud.Close()
	defer t.Close()
	near := cloud.Region(2)
	cloud.ListRegions(failover.Region{Name: near.RegionName(), URL: near.URL()})

	ctx := context.Background()
	if err := t.Prepare(ctx, cloud.URL, token); err != nil {
		log.Print(err) // the connection can be made all the same
	}
	err := t.Connect(ctx, cloud.URL, token, func(ctx context.Context, serverURL string) error {
		fmt.Println("dialling", serverURL)
		return nil
	})
	if err != nil {
		log.Fatal(err)
	}
	// Output: dialling https://demo.tokyo.production.livekit.cloud
}

// A server that sends a participant away says where to: its LeaveRequest carries a list of regions.
func ExampleTransport_ReportRegions() {
	cloud, t, token := exampleCloud()
	defer cloud.Close()
	defer t.Close()

	err := t.ReportRegions(cloud.URL, []failover.Region{ // each from a RegionInfo of the message
		{Name: "tokyo", URL: "https://demo.tokyo.production.livekit.cloud", Distance: 9_000_000},
	})
	if err != nil {
		log.Fatal(err)
	}
	err = t.Connect(context.Background(), cloud.URL, token, func(ctx context.Context, serverURL string) error {
		fmt.Println("dialling", serverURL)
		if serverURL == cloud.URL {
			return &failover.StatusError{Code: http.StatusServiceUnavailable}
		}
		return nil
	})
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println("region lists read:", len(cloud.Requests()))
	// Output:
	// dialling https://demo.livekit.cloud
	// dialling https://demo.tokyo.production.livekit.cloud
	// region lists read: 0
}

// A library that reads without a context would wait for a server that says nothing. On a connection of DialUntil it does not. With
// gorilla/websocket the function goes into the NetDialContext of the websocket.Dialer.
func ExampleDialUntil() {
	silent, err := net.Listen("tcp", "127.0.0.1:0") // takes connections, and never answers
	if err != nil {
		log.Fatal(err)
	}
	defer silent.Close()
	t, err := failover.New(nil)
	if err != nil {
		log.Fatal(err)
	}
	defer t.Close()

	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	err = t.Connect(ctx, "ws://"+silent.Addr().String(), token, func(ctx context.Context, serverURL string) error {
		u, err := url.Parse(serverURL)
		if err != nil {
			return err
		}
		netDial := failover.DialUntil(ctx, nil)
		conn, err := netDial(ctx, "tcp", u.Host)
		if err != nil {
			return err
		}
		cancel() // the participant has gone away meanwhile
		_, err = http.ReadResponse(bufio.NewReader(conn), nil)
		return err
	})
	fmt.Println(errors.Is(err, context.Canceled))
	// Output: true
}

// exampleCloud is a LiveKit Cloud in this process, a Transport for it and the token of a participant.
func exampleCloud() (*cloudtest.Cloud, *failover.Transport, string) {
	cloud, err := cloudtest.Start()
	if err != nil {
		log.Fatal(err)
	}
	t, err := failover.New(cloud.Transport())
	if err != nil {
		log.Fatal(err)
	}
	token, err := auth.NewAccessToken(cloud.Key, cloud.Secret).
		SetIdentity("ann").
		SetVideoGrant(&auth.VideoGrant{RoomJoin: true, Room: "studio"}).
		ToJWT()
	if err != nil {
		log.Fatal(err)
	}
	return cloud, t, token
}
