// Package auth makes and verifies LiveKit's access tokens and receives its webhooks.
//
// A token for a participant, signed with the project's API key and secret:
//
//	token, err := auth.NewAccessToken(key, secret).
//		SetIdentity("ann").
//		SetVideoGrant(&auth.VideoGrant{RoomJoin: true, Room: "studio"}).
//		ToJWT()
//
// A token of someone else's:
//
//	v, err := auth.ParseAPIToken(raw)
//	_, claims, err := v.Verify(secret)
//
// A webhook, in an HTTP handler:
//
//	event, err := auth.ReceiveWebhook(r, auth.NewSimpleKeyProvider(key, secret))
//
// Credentials are what the client of package lkrpc signs its calls with: APIKey or StaticToken.
//
// Tokens are JSON Web Tokens (RFC 7519) signed with HMAC-SHA256 (HS256). They are signed, not encrypted: whoever holds one can
// read its claims, and use it until it expires. What holds a secret or a token in this package does not show it when it is
// printed or logged. JSON is the exception, since that of ClaimGrants is a token's payload: give a logger the *ClaimGrants itself,
// not a struct around it.
package auth
