package auth_test

import (
	"context"
	"errors"
	"fmt"

	"github.com/lkrpc/lkrpc/auth"
)

// tokenService gives tokens that another service signs, so that this one needs no secret.
type tokenService struct {
	sign func(ctx context.Context, room string) (string, error)
}

func (s tokenService) Token(ctx context.Context, grants *auth.ClaimGrants) (string, error) {
	if grants.Video == nil || !grants.Video.RoomAdmin {
		return "", errors.New("this service may only administer rooms")
	}
	return s.sign(ctx, grants.Video.Room)
}

// Credentials of one's own, for lkrpc.New.
func ExampleCredentials() {
	var creds auth.Credentials = tokenService{sign: func(_ context.Context, room string) (string, error) {
		return "a-token-for-" + room, nil
	}}
	ctx := context.Background()
	token, err := creds.Token(ctx, &auth.ClaimGrants{Video: &auth.VideoGrant{RoomAdmin: true, Room: "studio"}})
	fmt.Println(token, err)
	_, err = creds.Token(ctx, &auth.ClaimGrants{SIP: &auth.SIPGrant{Call: true}})
	fmt.Println(err)
	// Output:
	// a-token-for-studio <nil>
	// this service may only administer rooms
}

// A key and its secret, printed: the secret does not show.
func ExampleAPIKey() {
	fmt.Println(auth.APIKey("APIabcdef", "the-secret"))
	fmt.Println(errors.Is(auth.CheckCredentials(auth.APIKey("APIabcdef", "")), auth.ErrKeysMissing))
	// Output:
	// auth.APIKey(APIabcdef, [hidden])
	// true
}

// A ready-made token, for a program that must not have the secret.
func ExampleStaticToken() {
	token, err := auth.NewAccessToken("APIabcdef", "the-secret").SetVideoGrant(&auth.VideoGrant{RoomList: true}).ToJWT()
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(auth.CheckCredentials(auth.StaticToken("Bearer " + token + "\n")))
	fmt.Println(errors.Is(auth.CheckCredentials(auth.StaticToken("no token")), auth.ErrTokenMalformed))
	// Output:
	// <nil>
	// true
}

// Whoever receives a participant's token, such as a service beside LiveKit, verifies it by the key that it names.
func ExampleVerifyToken() {
	token, err := auth.NewAccessToken("APIabcdef", "the-secret").SetIdentity("ann").ToJWT()
	if err != nil {
		fmt.Println(err)
		return
	}
	claims, err := auth.VerifyToken(token, auth.NewSimpleKeyProvider("APIabcdef", "the-secret"))
	fmt.Println(claims.Identity, err)
	_, err = auth.VerifyToken(token, auth.NewSimpleKeyProvider("APIother", "another-secret"))
	fmt.Println(errors.Is(err, auth.ErrTokenIssuer))
	// Output:
	// ann <nil>
	// true
}
