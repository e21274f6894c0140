// Package lkrpc calls LiveKit's server APIs from a backend, through a failover layer that survives a lost request, a dead region
// and a project that is pinned to other regions.
//
//	client, err := lkrpc.New("wss://my-project.livekit.cloud", auth.APIKey(key, secret)) // or lkrpc.NewFromEnv()
//	if err != nil {
//		return err
//	}
//	defer client.Close()
//	dispatch, _, err := client.EnsureDispatch(ctx, &livekit.CreateAgentDispatchRequest{Room: "call-17", AgentName: "support"})
//	if err != nil {
//		return err
//	}
//	_, err = client.WaitForAgent(ctx, "call-17", dispatch.GetId()) // the job of the agent that has come
//	return err
//
// Each of LiveKit's services is a field of [Client], with the methods that Twirp generates: client.Room.ListRooms,
// client.SIP.CreateSIPParticipant, client.Egress.StartEgress. Package auth makes tokens and receives webhooks, package
// proto/livekit has the messages, package failover is the layer itself, and package failover/cloudtest is a LiveKit Cloud in the
// process, for tests of your own.
//
// # What a dispatch that succeeded says
//
// That it was accepted, and nothing of an agent. A job may never come, and none ever comes if no worker of that name was
// registered when the dispatch was made: [Client.WaitForAgent] tells. On [ErrNoAgent] delete the dispatch, then ensure again; the
// dead one would only be found again otherwise.
//
// A plain CreateDispatch into a room that does not exist makes the room and also starts the workers that have no name;
// [Client.EnsureDispatch] does not. It keeps one agent in the room across all callers of one Client. Two processes at the same
// time can both make a dispatch in a room that exists: see there for what then happens, and what to do.
//
// # What is repeated
//
// A call gets up to three attempts, with one X-Livekit-Request-Id, on LiveKit Cloud's hosts and those named by failover.Hosts, if
// at least 5 s are left to its deadline; otherwise one. Calls that read, delete, update or stop are repeated after a failed
// connection, a missing answer or a 5xx. Calls that create are repeated likewise on LiveKit Cloud, which recognises the request
// id, and elsewhere only if the request surely did not take effect. Calls that somebody notices each time, such as
// CreateSIPParticipant, are repeated on every host in that case alone: a phone must not ring twice.
//
// The context's deadline is a wall, through all attempts and waits. Without one a call has 10 s for each possible attempt; one that
// waits for a phone to be answered at least the ringing time and 2 s, one that only dials 30 s, and PerformRpc its response timeout
// and 2 s.
//
// # Errors
//
// Every API call that fails returns an [*Error], which is a twirp.Error and tells each attempt. If its OutcomeUnknown is set the call
// may have taken effect: look before you make it again. On LiveKit Cloud, what creates something can also be made again with the
// same request id ([WithRequestID]), but not what somebody notices, such as CreateSIPParticipant. [SIPStatus] tells how a phone call
// ended.
package lkrpc
