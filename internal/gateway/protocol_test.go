package gateway_test

import (
	"strings"
	"testing"

	"agentsquad/internal/gateway"
	"agentsquad/internal/git"
)

func TestReadPush_TakesCommandsAndLeavesThePack(t *testing.T) {
	t.Parallel()
	sha := strings.Repeat("a", 40)
	in := gateway.PacketForTest(git.ZeroSHA+" "+sha+" refs/heads/task-1\x00 report-status side-band-64k\n") +
		gateway.PacketForTest(sha+" "+git.ZeroSHA+" refs/heads/x") + "0000PACK"
	text, left, err := gateway.ReadPushForTest([]byte(in))
	if err != nil || left != 4 || text != git.ZeroSHA+" "+sha+" refs/heads/task-1\n"+sha+" "+git.ZeroSHA+" refs/heads/x" {
		t.Errorf("got %q, %d, %v", text, left, err)
	}
	for _, bad := range []string{"zzzz", "0003", "fff1", "0009short", gateway.PacketForTest("x y z"), gateway.PacketForTest("shallow " + sha), gateway.PacketForTest(git.ZeroSHA + " " + sha)} {
		if _, _, err := gateway.ReadPushForTest([]byte(bad + "0000")); err == nil {
			t.Errorf("%q passes", bad)
		}
	}
}

func FuzzReadPush(f *testing.F) {
	sha := strings.Repeat("b", 40)
	f.Add([]byte(gateway.PacketForTest(git.ZeroSHA+" "+sha+" refs/heads/a\x00caps") + "0000PACK"))
	f.Add([]byte("0000"))
	f.Add([]byte("000"))
	f.Fuzz(func(t *testing.T, b []byte) {
		text, left, err := gateway.ReadPushForTest(b)
		if left > len(b) || (err == nil && text != "" && !strings.Contains(text, " ")) {
			t.Fatalf("%q: %q, %d left", b, text, left)
		}
	})
}

func FuzzMeter(f *testing.F) {
	f.Add("data: {\"choices\":[],\"usage\":{\"prompt_tokens\":1}}\n\ndata: x\n\n", 3)
	f.Add("event: a\r\ndata: {}\r\n\r\n", 1)
	f.Fuzz(func(t *testing.T, s string, n int) {
		if sent, _, _ := gateway.MeterForTest(s, n, false); sent != s {
			t.Fatalf("changed %q to %q", s, sent)
		}
		gateway.MeterForTest(s, n, true)
	})
}
