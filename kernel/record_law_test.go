package kernel_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/knl-run/knl/kernel"
	"github.com/knl-run/knl/kernel/store"
)

// recordIsLossless: an event of any kind and any data comes back byte for byte,
// its long strings kept beside it.
func recordIsLossless(t *rapid.T) {
	ev := &kernel.Event{
		Seq: 7, EpochMS: rapid.Int64().Draw(t, "ms"), Kind: rapid.StringN(1, 20, -1).Draw(t, "kind"),
		Beat: rapid.StringN(0, 20, -1).Draw(t, "beat"), Meta: someObject().Draw(t, "meta"), Data: someObject().Draw(t, "data"),
	}
	rec, blobs := kernel.Encoded(ev)
	kept := map[[32]byte][]byte{}
	for _, b := range blobs {
		require.GreaterOrEqual(t, len(b.Data), 4096)
		require.Equal(t, byte('"'), b.Data[0])
		kept[b.Hash] = b.Data
	}
	rec.Seq = ev.Seq
	got, err := kernel.Decoded(rec, func(h [32]byte) ([]byte, error) { return kept[h], nil })
	require.NoError(t, err)
	require.Equal(t, eventText(ev), eventText(got))
	require.Equal(t, ev.EpochMS, got.EpochMS)
	again, _ := kernel.Encoded(got)
	require.Equal(t, rec.Body, again.Body)
	if len(blobs) > 0 {
		require.Less(t, len(rec.Body), len(ev.Data)+len(ev.Meta)+len(ev.Kind), "a long string stands beside the record")
	}
}

func TestRecordIsLossless(t *testing.T) { rapid.Check(t, recordIsLossless) }

func FuzzRecordIsLossless(f *testing.F) { f.Fuzz(rapid.MakeFuzz(recordIsLossless)) }

// damageIsFound: whatever bytes stand where a record should, reading them is an
// event or an error, never a panic.
func damageIsFound(t *rapid.T) {
	ev := &kernel.Event{Kind: "x", Meta: raw("{}"), Data: raw(`{"a":"` + strings.Repeat("x", rapid.SampledFrom([]int{1, 5000}).Draw(t, "n")) + `"}`)}
	rec, _ := kernel.Encoded(ev)
	b := rec.Body
	for range rapid.IntRange(1, 4).Draw(t, "faults") {
		i := rapid.IntRange(0, len(b)-1).Draw(t, "at")
		switch rapid.IntRange(0, 2).Draw(t, "fault") {
		case 0:
			b[i] = rapid.Byte().Draw(t, "byte")
		case 1:
			b = b[:i+1]
		default:
			b = append(b, rapid.SliceOfN(rapid.Byte(), 0, 40).Draw(t, "more")...)
		}
	}
	rec.Body = b
	got, err := kernel.Decoded(rec, func([32]byte) ([]byte, error) { return nil, store.ErrNotFound })
	if err == nil {
		require.NotNil(t, got)
		return
	}
	require.True(t, errors.Is(err, store.ErrCorrupt) || errors.Is(err, store.ErrNotFound), "%v", err)
}

func TestDamageIsFound(t *testing.T) { rapid.Check(t, damageIsFound) }

func FuzzDamageIsFound(f *testing.F) { f.Fuzz(rapid.MakeFuzz(damageIsFound)) }

func TestLongTextIsKeptOnce(t *testing.T) {
	tape := newTape()
	s, err := newKernel(tape).Open(ctxb, kernel.Open{})
	require.NoError(t, err)
	long := strings.Repeat("a long line\n", 1000)
	for range 3 {
		_, err = s.Append(ctxb, userSays(long))
		require.NoError(t, err)
	}
	size, hashes := 0, map[[32]byte]bool{}
	for _, b := range tape.batches {
		for _, a := range b.Appends {
			for _, r := range a.Records {
				size += len(r.Body)
			}
		}
		for _, blob := range b.Blobs {
			hashes[blob.Hash] = true
		}
	}
	require.Len(t, hashes, 1)
	require.Less(t, size, 1000)
	require.Equal(t, string(userSays(long).Data), string(logOf(t, s)[3].Data))
}
