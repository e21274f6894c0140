package failover

import (
	"bytes"
	"errors"
	"io"
	"net/http"
	"strings"
	"testing"
	"testing/iotest"
)

func TestReadAnswer(t *testing.T) {
	const most = 32 << 20
	broken := errors.New("connection reset")
	large := strings.Repeat("x", 1<<20+1) // more than is allocated in advance
	for name, test := range map[string]struct {
		stated int64 // -1: no length is stated
		body   io.Reader
		want   string
		err    error // nil: none; io.EOF: any
	}{
		"empty":                             {0, strings.NewReader(""), "", nil},
		"stated":                            {5, strings.NewReader("hello"), "hello", nil},
		"stated, byte by byte":              {5, iotest.OneByteReader(strings.NewReader("hello")), "hello", nil},
		"stated, the end with the last":     {5, iotest.DataErrReader(strings.NewReader("hello")), "hello", nil},
		"stated and large":                  {int64(len(large)), strings.NewReader(large), large, nil},
		"not stated":                        {-1, strings.NewReader("hello"), "hello", nil},
		"not stated and empty":              {-1, strings.NewReader(""), "", nil},
		"shorter than stated":               {6, strings.NewReader("hello"), "", io.ErrUnexpectedEOF},
		"nothing of what was stated":        {6, strings.NewReader(""), "", io.EOF},
		"longer than stated":                {4, strings.NewReader("hello"), "", io.EOF},
		"stated empty, but is not":          {0, strings.NewReader("hello"), "", io.EOF},
		"stated, broken off":                {9, io.MultiReader(strings.NewReader("hello"), iotest.ErrReader(broken)), "", broken},
		"stated, broken at the end":         {5, io.MultiReader(strings.NewReader("hello"), iotest.ErrReader(broken)), "", broken},
		"not stated, broken off":            {-1, io.MultiReader(strings.NewReader("hello"), iotest.ErrReader(broken)), "", broken},
		"not stated, broken off at a frame": {-1, io.MultiReader(strings.NewReader("hello"), iotest.ErrReader(io.ErrUnexpectedEOF)), "", io.ErrUnexpectedEOF},
		"as large as may be":                {-1, io.LimitReader(zeros{}, most), strings.Repeat("\x00", most), nil},
		"too large":                         {-1, io.LimitReader(zeros{}, most+1), "", errTooLarge},
		"without an end":                    {-1, zeros{}, "", errTooLarge},
		"too large, and stated":             {most + 1, io.LimitReader(zeros{}, most+1), "", errTooLarge},
		"stated beyond all measure":         {1 << 62, strings.NewReader("hello"), "", io.EOF},
	} {
		got, err := readAnswer(&http.Response{ContentLength: test.stated, Body: io.NopCloser(test.body)})
		if string(got) != test.want {
			t.Errorf("%s: got %d bytes, want %d", name, len(got), len(test.want))
		}
		if (err == nil) != (test.err == nil) || test.err != io.EOF && !errors.Is(err, test.err) {
			t.Errorf("%s: %v, want %v", name, err, test.err)
		}
	}
}

// zeros has no end.
type zeros struct{}

func (zeros) Read(p []byte) (int, error) { clear(p); return len(p), nil }

func TestSameType(t *testing.T) {
	for _, test := range []struct {
		asked, got string
		want       bool
	}{
		{"application/protobuf", "application/protobuf", true},
		{"application/protobuf", "Application/Protobuf", true},
		{"application/protobuf", " application/protobuf ", true},
		{"application/protobuf", "application/protobuf; charset=utf-8", true},
		{"application/protobuf", "application/protobuf;charset=utf-8", true},
		{"application/protobuf", "application/protobuf; charset", true},
		{"application/protobuf", "application/protobuf;", true},
		{"application/json; charset=utf-8", "application/json", true},
		{"", "text/html", true}, // nothing was asked for
		{"", "", true},
		{"application/protobuf", "", false},
		{"application/protobuf", "application/json", false},
		{"application/protobuf", "text/html; charset=utf-8", false},
		{"application/protobuf", "application/protobuf2", false},
		{"application/protobuf", "application/x-protobuf", false},
		{"application/protobuf", "text/html; x=application/protobuf", false},
		{"application/protobuf", ";application/protobuf", false},
		{"application/protobuf", "application/protobuf, text/html", false},
	} {
		if got := sameType(test.asked, test.got); got != test.want {
			t.Errorf("asked for %q, got %q: same %t", test.asked, test.got, got)
		}
	}
}

func TestHasSIPStatus(t *testing.T) {
	for body, want := range map[string]bool{
		`{"code":"unavailable","msg":"call failed","meta":{"sip_status_code":"486","sip_status":"Busy Here"}}`: true,
		`{"meta":{"sip_status_code":"486"}}`:             true,
		`{"meta":{"sip_status":"Busy Here"}}`:            true,
		`{"meta":{"sip_status_code":486}}`:               true,
		`{"meta":{"sip_\u0073tatus_code":"486"}}`:        true,
		`{"meta":{"sip_statuses":"none"}}`:               false,
		`{"meta":{"reason":"sip_status_code"}}`:          false,
		`{"msg":"no sip_status","meta":{}}`:              false,
		`{"sip_status_code":"486"}`:                      false,
		`{"meta":"sip_status"}`:                          false,
		`{"meta":{"sip_status_code":"486"}`:              true, // broken off
		`{"code":"unavailable","meta":{"sip_status":"Bu`: true,
		`{"code":"unavailable","meta":{"sip_status"`:     false, // nobody knows
		`sip_status_code: 486`:                           false,
		`<html>sip_status</html>`:                        false,
		``:                                               false,
		`null`:                                           false,
		`{"code":"unavailable","msg":"try again"}`:       false,
		`{"meta":null,"msg":"sip_status, says a text"}`:  false,
	} {
		if got := hasSIPStatus([]byte(body)); got != want {
			t.Errorf("%s: %t, want %t", body, got, want)
		}
	}
}

func TestMemoryBody(t *testing.T) {
	b := &memoryBody{*bytes.NewReader([]byte("hello"))}
	if err := b.Close(); err != nil {
		t.Error(err)
	}
	if text, err := io.ReadAll(b); string(text) != "hello" || err != nil {
		t.Errorf("%q, %v", text, err)
	}
}
