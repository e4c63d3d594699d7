package kernel_test

import (
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/knl-run/knl/kernel"
)

func TestTranscriptsOfLedgers(t *testing.T) {
	play(t, "budget", func(x *stage) {
		s := x.open(kernel.Open{Grant: &kernel.Grant{Amount: 3, Tag: "beats", Desc: "a trial"}}, "hello")
		d := device(t, kernel.Config{LLM: replies(says("one"), says("two")),
			Cost: func(context.Context, *kernel.Request) (int64, error) { return 2, nil }})
		x.beat(s, d)
		x.beat(s, d)
		s = x.resume(s.ID(), kernel.Resume{Grant: &kernel.Grant{Amount: 1, Tag: "more"}})
		x.beat(s, d)
		left, granted, err := s.Remaining(ctxb)
		require.NoError(t, err)
		x.do("remaining")
		x.say("%d %t", left, granted)
	})
	play(t, "budget by hand", func(x *stage) {
		s := x.open(kernel.Open{Grant: &kernel.Grant{Amount: 10, Tag: "units"}})
		reserve := func(n int64) {
			ok, tag, err := s.Reserve(ctxb, n)
			x.do("reserve %d", n)
			x.say("%t %q %v", ok, tag, err)
			x.log(s)
		}
		reserve(4)
		x.err("settle 1", s.Settle(ctxb, 1))
		x.err("settle 1 again", s.Settle(ctxb, 1))
		reserve(4)
		x.err("settle 100", s.Settle(ctxb, 100))
		reserve(1)
		reserve(0)
		reserve(-1)
		x.err("spend 5", s.Spend(ctxb, 5))
		x.err("spend -5", s.Spend(ctxb, -5))
		x.log(s)
		list, _, err := s.LedgerView(ctxb, kernel.ViewOptions{})
		rows(x, "ledger", list, err)
	})
	play(t, "no budget", func(x *stage) {
		s := x.open(kernel.Open{})
		ok, tag, err := s.Reserve(ctxb, 1_000_000)
		x.do("reserve without a grant")
		x.say("%t %q %v", ok, tag, err)
		x.err("spend", s.Spend(ctxb, 7))
		x.err("settle", s.Settle(ctxb, 7))
		left, granted, err := s.Remaining(ctxb)
		x.do("remaining")
		x.say("%d %t %v", left, granted, err)
		x.log(s)
	})
	play(t, "settle", func(x *stage) {
		s := x.open(kernel.Open{Grant: &kernel.Grant{Amount: 1000, Tag: "tokens"}}, "hello")
		settle := []int64{40, 700, -1, 0}
		at := 0
		d := device(t, kernel.Config{LLM: replies(says("a"), says("b"), says("c"), says("d"), calls(use("a", "look", ``))), Tools: only("look"),
			Cost: func(context.Context, *kernel.Request) (int64, error) { return 100, nil },
			Settle: func(context.Context, *kernel.Request, *kernel.Answer) (int64, error) {
				if at == len(settle) {
					return 0, errors.New("no usage")
				}
				at++
				return settle[at-1], nil
			}})
		for range 5 {
			x.beat(s, d)
		}
		left, _, err := s.Remaining(ctxb)
		x.do("remaining")
		x.say("%d %v", left, err)
	})
	play(t, "children", func(x *stage) {
		up := x.open(kernel.Open{Owner: "ann", Grant: &kernel.Grant{Amount: 10, Tag: "beats"}}, "hello")
		a := x.open(kernel.Open{Parent: up, Take: &kernel.Take{Amount: 4, Refund: true}}, "part a")
		b := x.open(kernel.Open{Parent: up, Take: &kernel.Take{Amount: 3, Tag: "tries"}, Owner: "bob"}, "part b")
		_, err := x.k.Open(ctxb, kernel.Open{Parent: up, Take: &kernel.Take{Amount: 4}})
		x.err("open a child that is not covered", err)
		x.log(up)
		x.beat(a, device(t, kernel.Config{LLM: replies(says("done"))}))
		x.err("close the child with a refund", a.Close(ctxb, "", ""))
		x.log(a)
		x.log(up)
		x.err("close the parent", up.Close(ctxb, "enough", strings.Repeat("ä", 210)))
		x.log(up)
		x.err("close the other child", b.Close(ctxb, "", ""))
		x.log(b)
		_, err = x.k.Open(ctxb, kernel.Open{Parent: up, Take: &kernel.Take{Amount: 1}})
		x.err("open a child of a closed parent", err)
		tree, err := x.k.Tree(ctxb, up.ID())
		rows(x, "tree", tree, err)
	})
}

func TestTranscriptsOfRecovery(t *testing.T) {
	play(t, "interrupted at the call", func(x *stage) {
		s := x.open(kernel.Open{Grant: &kernel.Grant{Amount: 5}}, "hello")
		x.die(s, 5)
		s = x.resume(s.ID(), kernel.Resume{Meta: raw(`{"run":"two"}`)})
		in, err := s.Interrupted(ctxb)
		rows(x, "interrupted", []any{in}, err)
		x.rerun(s, device(t, kernel.Config{}), "a")
		x.beat(s, device(t, kernel.Config{LLM: replies(says("hi again"))}))
	})
	play(t, "interrupted in a tool", func(x *stage) {
		s := x.open(kernel.Open{}, "hello")
		x.die(s, 7)
		s = x.resume(s.ID(), kernel.Resume{})
		x.folded(s)
		d := device(t, kernel.Config{LLM: replies(says("so it goes")), Tools: only("look", "send", "put")})
		x.rerun(s, d, "a")
		x.rerun(s, d, "b")
		x.rerun(s, d, "b")
		x.rerun(s, d, "c")
		x.rerun(s, d, "zz")
		x.folded(s)
		open, _, err := s.OpenCallsView(ctxb, kernel.ViewOptions{})
		rows(x, "open calls", open, err)
		pairs, _, err := s.PairsView(ctxb, kernel.ViewOptions{})
		rows(x, "pairs", pairs, err)
		x.beat(s, d)
		x.rerun(s, d, "c")
	})
	play(t, "interrupted and labelled since", func(x *stage) {
		s := x.open(kernel.Open{}, "hello")
		x.die(s, 7)
		s = x.resume(s.ID(), kernel.Resume{})
		for _, label := range []string{"mine", "yours", "theirs"} {
			_, err := s.Append(ctxb, kernel.Draft{Kind: "note", Beat: label})
			x.err("append "+label, err)
		}
		in, err := s.Interrupted(ctxb)
		rows(x, "interrupted", []any{in}, err)
		x.rerun(s, device(t, kernel.Config{Tools: only("look", "send", "put")}), "c")
	})
	play(t, "interrupted before a tool", func(x *stage) {
		s := x.open(kernel.Open{}, "hello")
		x.die(s, 4)
		s = x.resume(s.ID(), kernel.Resume{})
		x.folded(s)
	})
	play(t, "interrupted in a rerun", func(x *stage) {
		s := x.open(kernel.Open{}, "hello")
		x.die(s, 7) // b was started, c was not
		d := device(t, kernel.Config{LLM: replies(), Tools: only("send", "put")})
		s = x.resume(s.ID(), kernel.Resume{})
		x.rerunDying(s, d, "c")
		s = x.resume(s.ID(), kernel.Resume{})
		x.do("c was started once and is not idempotent")
		x.rerun(s, d, "c")
		x.rerunDying(s, d, "b")
		s = x.resume(s.ID(), kernel.Resume{})
		x.rerun(s, d, "b")
		x.folded(s)
	})
	play(t, "interrupted and closed", func(x *stage) {
		s := x.open(kernel.Open{}, "hello")
		x.die(s, 7)
		s = x.resume(s.ID(), kernel.Resume{})
		x.err("close", s.Close(ctxb, "", ""))
		x.log(s)
		_, err := x.k.Resume(ctxb, s.ID(), kernel.Resume{})
		x.err("resume", err)
	})
}

func TestTranscriptsOfHandles(t *testing.T) {
	play(t, "attached", func(x *stage) {
		s := x.open(kernel.Open{Grant: &kernel.Grant{Amount: 5}}, "hello")
		a, err := x.k.Attach(ctxb, s.ID())
		require.NoError(t, err)
		seq, err := a.Append(ctxb, kernel.Draft{Kind: "note", Data: raw(`{"by":"a watcher"}`)})
		x.do("append beside the driver")
		x.say("%d %v", seq, err)
		_, _, err = a.Reserve(ctxb, 1)
		x.err("reserve", err)
		x.err("spend", a.Spend(ctxb, 1))
		x.err("settle", a.Settle(ctxb, 1))
		x.err("close", a.Close(ctxb, "", ""))
		_, err = x.k.Open(ctxb, kernel.Open{Parent: a, Take: &kernel.Take{Amount: 1}})
		x.err("open a child", err)
		d := device(t, kernel.Config{LLM: replies(says("hi"))})
		x.do("beat")
		x.say("%s", outcomeText(kernel.Beat(ctxb, a, d, kernel.BeatOptions{})))
		x.rerun(a, d, "a")
		x.beat(s, d)
		require.NoError(t, s.Close(ctxb, "", ""))
		_, err = a.Append(ctxb, kernel.Draft{Kind: "note"})
		x.err("append after the end", err)
		x.log(a)
	})
	play(t, "fenced", func(x *stage) {
		old := x.open(kernel.Open{Grant: &kernel.Grant{Amount: 5}}, "hello")
		s := x.resume(old.ID(), kernel.Resume{})
		d := device(t, kernel.Config{LLM: replies(says("hi")), Tools: only("look")})
		x.do("the old handle")
		x.say("%s", outcomeText(kernel.Beat(ctxb, old, d, kernel.BeatOptions{})))
		x.say("%s", outcomeText(kernel.Rerun(ctxb, old, d, "a")))
		_, err := old.Append(ctxb, userSays("psst"))
		x.say("%v", err)
		_, _, err = old.Reserve(ctxb, 1)
		x.say("%v", err)
		x.say("%v", old.Spend(ctxb, 1))
		x.say("%v", old.Close(ctxb, "", ""))
		_, err = x.k.Open(ctxb, kernel.Open{Parent: old, Take: &kernel.Take{Amount: 1}})
		x.say("%v", err)
		x.log(s)
		x.beat(s, d)
	})
	play(t, "closed", func(x *stage) {
		s := x.open(kernel.Open{}, "hello")
		x.err("close", s.Close(ctxb, "done", "all of it"))
		x.err("close again", s.Close(ctxb, "", ""))
		_, err := s.Append(ctxb, userSays("more"))
		x.err("append", err)
		_, _, err = s.Reserve(ctxb, 1)
		x.err("reserve", err)
		x.beat(s, device(t, kernel.Config{LLM: replies(says("hi"))}))
		evs, err := s.Events(ctxb, 1)
		x.do("read")
		x.say("%d events %v", len(evs), err)
		_, err = x.k.Resume(ctxb, s.ID(), kernel.Resume{})
		x.err("resume", err)
	})
	play(t, "views", func(x *stage) {
		s := x.open(kernel.Open{Grant: &kernel.Grant{Amount: 5, Tag: "beats"}}, "hello")
		d := device(t, kernel.Config{LLM: replies(calls(use("a", "look", ``), use("b", "fail", ``)), says("hi"), &kernel.CallError{Kind: kernel.Server, Message: "x"}),
			Tools: only("look", "fail")})
		for range 3 {
			x.beat(s, d)
		}
		beats, _, err := s.BeatsView(ctxb, kernel.ViewOptions{})
		rows(x, "beats", beats, err)
		pairs, cut, err := s.PairsView(ctxb, kernel.ViewOptions{Limit: 1})
		rows(x, "pairs, at most 1", pairs, err)
		x.say("truncated %t", cut)
		usage, _, err := s.UsageView(ctxb, kernel.ViewOptions{})
		rows(x, "usage", usage, err)
		list, err := x.k.Sessions(ctxb, "", 0)
		rows(x, "sessions", list, err)
	})
}
