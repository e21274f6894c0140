package failover

import (
	"fmt"
	"net/http"
	"regexp"
	"strings"
	"unicode"
	"unicode/utf8"
)

// tokenShape is what is taken for a secret: whatever begins like a JWT (eyJ is base64 of {" and a letter), also when the rest
// is cut off; a JWT whose header begins otherwise, told by its payload, or, where that is encrypted, by the length of what
// follows; what a URL calls an access token; and what follows "Bearer", unless it is as short as a word.
var tokenShape = regexp.MustCompile(`(eyJ[\w-]{4,}|` +
	`(` + blankHeader + `|ey[IKL][\w-]{12,})\.e(y[ABI-L]|w[klop01]|30)[\w-]*|` +
	blankHeader + `\.[\w-]*\.[\w-]{16,})(\.[\w-]*)*|` +
	`(?i:access_token=[^\s&"']+|bearer(\s|%20)+[\w.~+/=-]{16,})`)

// blankHeader is a JWT's header that has a blank or a line break after the brace.
const blankHeader = `e(yA|w[ko0])[giJKN][\w-]{11,}`

// Scrub returns text with whatever looks like a JWT or a bearer token replaced.
func Scrub(text string) string { return tokenShape.ReplaceAllString(text, "[token]") }

const (
	maxText = 500     // bytes of another's text that an error or a log quotes
	maxRead = 4 << 10 // bytes of it that are looked at for that
)

// Line returns text that is not ours as one line: printable, so that it can do nothing to a terminal or a log, without what looks
// like a JWT or a bearer token. It has at most most bytes, and a mark behind them if it was cut; below 0 counts as 0. Of text that is
// longer than 4 KiB the rest is not looked at.
func Line(text string, most int) string {
	most = max(most, 0)
	text = strings.ToValidUTF8(text[:min(len(text), maxRead)], "?")
	words := strings.FieldsFunc(text, func(r rune) bool { return unicode.IsSpace(r) || !unicode.IsPrint(r) })
	text = Scrub(strings.Join(words, " "))
	if len(text) <= most {
		return text
	}
	for !utf8.RuneStart(text[most]) {
		most--
	}
	return text[:most] + "…"
}

// textOf is an error's text, which need not be ours, as one line.
func textOf(err error) string { return Line(fmt.Sprint(err), maxText) }

// scrubbedError is an error whose text held a token. errors.Is and errors.As still see through it.
type scrubbedError struct {
	text string
	err  error
}

func (e *scrubbedError) Error() string { return e.text }
func (e *scrubbedError) Unwrap() error { return e.err }

// scrubError keeps a call's token, whatever it looks like, and what looks like one out of an error's text.
func scrubError(err error, token string) error {
	if err == nil {
		return nil
	}
	text := fmt.Sprint(err) // which survives one that is a nil pointer
	clean := text
	if len(token) >= 8 { // less is no secret, and may be part of any word
		clean = strings.ReplaceAll(clean, token, "[token]")
	}
	if clean = Scrub(clean); clean != text {
		return &scrubbedError{clean, err}
	}
	return err
}

// tokenIn is the token that a header carries, in whatever spelling of its name.
func tokenIn(header http.Header) string {
	value := header.Get("Authorization")
	if value == "" {
		for name, values := range header {
			if strings.EqualFold(name, "Authorization") {
				value = strings.Join(values, "")
			}
		}
	}
	if _, token, ok := strings.Cut(value, " "); ok {
		return strings.TrimSpace(token)
	}
	return value
}
