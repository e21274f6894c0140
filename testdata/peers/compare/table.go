package main

import (
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"
	"time"
)

// table is a Markdown table.
type table struct {
	head []string
	rows [][]string
}

func (t *table) add(cells ...string) { t.rows = append(t.rows, cells) }

// print writes it with aligned columns: the first to the left, the others to the right.
func (t *table) print(w io.Writer, title string) {
	width := make([]int, len(t.head))
	for _, row := range append([][]string{t.head}, t.rows...) {
		for i, cell := range row {
			width[i] = max(width[i], len([]rune(cell)), 3)
		}
	}
	line := func(row []string) {
		for i, cell := range row {
			pad := strings.Repeat(" ", width[i]-len([]rune(cell)))
			if i == 0 {
				cell += pad
			} else {
				cell = pad + cell
			}
			fmt.Fprintf(w, "| %s ", cell)
		}
		fmt.Fprintln(w, "|")
	}
	fmt.Fprintf(w, "\n### %s\n\n", title)
	line(t.head)
	rule := make([]string, len(t.head))
	for i := range rule {
		if rule[i] = strings.Repeat("-", width[i]-1) + ":"; i == 0 {
			rule[i] = strings.Repeat("-", width[i])
		}
	}
	line(rule)
	for _, row := range t.rows {
		line(row)
	}
}

// median is the middle value, the mean of two for an even number, 0 for none.
func median(values []float64) float64 {
	if len(values) == 0 {
		return 0
	}
	v := slices.Sorted(slices.Values(values))
	return (v[(len(v)-1)/2] + v[len(v)/2]) / 2
}

// number prints a number with about three digits.
func number(v float64) string {
	switch {
	case v >= 100:
		return strconv.FormatFloat(v, 'f', 0, 64)
	case v >= 10:
		return strconv.FormatFloat(v, 'f', 1, 64)
	}
	return strconv.FormatFloat(v, 'f', 2, 64)
}

func ratio(v float64) string { return strconv.FormatFloat(v, 'f', 2, 64) + " ×" }

// span prints a duration as a table needs it.
func span(d time.Duration) string {
	switch {
	case d >= time.Second:
		return d.Round(10 * time.Millisecond).String()
	case d >= 10*time.Millisecond:
		return d.Round(time.Millisecond).String()
	}
	return d.Round(10 * time.Microsecond).String()
}
