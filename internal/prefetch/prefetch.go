// Package prefetch reads batches ahead of their consumer.
package prefetch

import "iter"

// Batches returns an iterator over the batches that read yields, each with a note. read runs in a goroutine of its own, up to three
// batches ahead of the loop, and has returned when the loop ends. read must not use a slice after it has passed it to yield, which
// returns another slice to fill, and false if the loop has ended.
func Batches[T, Note any](read func(yield func([]T, Note) (room []T, more bool))) iter.Seq2[[]T, Note] {
	return func(yield func([]T, Note) bool) {
		type batch struct {
			items []T
			note  Note
		}
		full, free, over := make(chan batch, 2), make(chan []T, 2), make(chan struct{})
		free <- nil
		free <- nil
		go func() {
			defer close(full)
			read(func(items []T, note Note) ([]T, bool) {
				select {
				case room := <-free:
					full <- batch{items, note} // there is room: at most two are under way
					return room, true
				case <-over:
					return items, false
				}
			})
		}()
		for b := range full {
			if !yield(b.items, b.note) {
				close(over)
				for range full { // until the reader has noticed
				}
				return
			}
			free <- b.items
		}
	}
}
