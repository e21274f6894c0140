// Package cloudtest is a LiveKit Cloud in the process: regions under their real names, each of which can be broken while it
// runs. It is for tests of services that use LiveKit, in the way of net/http/httptest, and for showing what an outage is like.
//
//	cloud, err := cloudtest.Start()
//	if err != nil {
//		return err
//	}
//	defer cloud.Close()
//	client, err := lkrpc.New(cloud.URL, auth.APIKey(cloud.Key, cloud.Secret), lkrpc.WithHTTPTransport(cloud.Transport()))
//	if err != nil {
//		return err
//	}
//	defer client.Close()
//	cloud.Region(0).Break(cloudtest.Status(503, nil, "maintenance"), cloudtest.On(cloudtest.API)) // what now?
//
// A client learns of the other regions from the home region's list: when a fault spoils that too, as Break without On does and the
// faults of the network do, only a client that was answered before goes elsewhere.
//
// # What is real
//
// Each Host has listeners of its own, TLS with a certificate for its name, HTTP/1.1 and HTTP/2. Transport and DialContext find
// the hosts by name: demo.livekit.cloud, the home region of the project; demo.<region>.production.livekit.cloud, the others;
// cloud-api.livekit.io; agents.livekit.cloud; and what AddHost adds. So a client applies the same rules as to LiveKit Cloud.
//
// RoomService and AgentDispatchService work, on a state that all regions share. Jobs come to dispatches by AddWorker or SetJob.
// The methods of all other services answer by the shape of their messages: a reply repeats what the request says, what is
// created has ids and shows in lists, nothing rings or records. Every call needs a token of the project with the grant for its
// method; without, it is answered 401 "unauthenticated", as by livekit-server, for a missing token and a missing grant alike.
// A create that comes again with the same X-Livekit-Request-Id is recognised (not so with WithoutDedup). What somebody notices, such
// as CreateSIPParticipant, happens each time that it comes.
//
// The RTC paths go as far as the token's check, the WebSocket upgrade and the JoinResponse: who connects is told the room, and
// is a participant until the connection ends; WebSocket pings are answered, and nothing else is said.
//
// # Faults
//
// Break spoils requests, by what they ask for and at what time; Refuse, BlackHole, Unresolve and Freeze spoil the network; Pin
// ties the project to regions. What a region list can do to a client:
//
//	cloud.ListRegions(failover.Region{URL: "https://evil.example"})                     // hostile
//	home.Break(cloudtest.Status(200, nil, "<html>"), cloudtest.On(cloudtest.RegionList)) // broken
//	home.Break(cloudtest.Flood(64<<20), cloudtest.On(cloudtest.RegionList))              // huge
//	home.Break(cloudtest.Drip(time.Second), cloudtest.On(cloudtest.RegionList))          // slow
//
// Requests, Effects, Dials and Strays tell what arrived and what came of it.
//
// # In a synctest bubble
//
// With the option InMemory everything works inside testing/synctest, waits included, which then take no time. Start and Close
// the Cloud inside the bubble, and close idle connections of the transport or the client. Without InMemory a bubble's clock
// stands still, because a goroutine that waits for a socket does not count as idle.
package cloudtest
