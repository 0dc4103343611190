package management

import (
	"cmp"
	"fmt"
	"net/http"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// listing is what a request for a list chooses from. Only what it comes to is shown.
type listing[T any] struct {
	items []T
	name  func(T) string // by which it can be filtered
	show  func(T) object
}

const (
	defaultPageSize = 100
	maxPageSize     = 500
)

// answer filters, sorts and cuts the list as the query of r says.
// Source: https://www.rabbitmq.com/docs/http-api-reference, pagination and sorting.
func (l listing[T]) answer(r *request) (any, error) {
	page, err := pageOf(r)
	if err != nil {
		return nil, err
	}
	var columns []string
	if c := r.param("columns"); c != "" {
		columns = strings.Split(c, ",")
	}
	items := l.items
	if page != nil {
		items = l.filter(r)
	}
	all := []object{}
	if by := r.param("sort"); by != "" {
		for _, item := range items {
			all = append(all, l.show(item))
		}
		order(all, by, r.is("sort_reverse"))
		if page == nil {
			return cut(all, columns), nil
		}
		from, to, err := page.bounds(len(all))
		if err != nil {
			return nil, err
		}
		return page.answer(cut(all[from:to], columns), len(items), len(l.items)), nil
	}
	if r.is("sort_reverse") {
		items = slices.Clone(items)
		slices.Reverse(items)
	}
	from, to := 0, len(items)
	if page != nil {
		if from, to, err = page.bounds(len(items)); err != nil {
			return nil, err
		}
	}
	for _, item := range items[from:to] {
		all = append(all, l.show(item))
	}
	if all = cut(all, columns); page == nil {
		return all, nil
	}
	return page.answer(all, len(items), len(l.items)), nil
}

// filter returns the items whose names have what the query asks for.
func (l listing[T]) filter(r *request) []T {
	wanted := r.param("name")
	if wanted == "" {
		return l.items
	}
	has := func(name string) bool { return strings.Contains(strings.ToLower(name), strings.ToLower(wanted)) }
	if r.is("use_regex") {
		expression, err := regexp.Compile("(?i)" + wanted)
		if err != nil {
			return nil
		}
		has = expression.MatchString
	}
	var kept []T
	for _, item := range l.items {
		if has(l.name(item)) {
			kept = append(kept, item)
		}
	}
	return kept
}

func cut(all []object, columns []string) []object {
	if columns == nil {
		return all
	}
	for i := range all {
		all[i] = all[i].only(columns)
	}
	return all
}

// order sorts by what is at a path, and leaves what is equal as it is.
func order(all []object, path string, reverse bool) {
	keys := make(map[*member]any, len(all))
	for _, o := range all {
		keys[&o[0]] = o.at(path)
	}
	slices.SortStableFunc(all, func(a, b object) int {
		c := compare(keys[&a[0]], keys[&b[0]])
		if reverse {
			return -c
		}
		return c
	})
}

// compare orders values as Erlang does: numbers, then all else, by their text.
func compare(a, b any) int {
	x, xIsNumber := float(a)
	y, yIsNumber := float(b)
	switch {
	case xIsNumber && yIsNumber:
		return cmp.Compare(x, y)
	case xIsNumber:
		return -1
	case yIsNumber:
		return 1
	}
	return cmp.Compare(plainText(a), plainText(b))
}

func float(v any) (float64, bool) {
	switch v := v.(type) {
	case int:
		return float64(v), true
	case int64:
		return float64(v), true
	case uint64:
		return float64(v), true
	case rate:
		return float64(v), true
	}
	return 0, false
}

func plainText(v any) string {
	if s, ok := v.(string); ok {
		return s
	}
	return string(appendJSON(nil, v))
}

// page is a part of a list.
type page struct{ number, size int }

// pageOf is the page that the query asks for, nil if it asks for none.
func pageOf(r *request) (*page, error) {
	query := r.http.URL.Query()
	if !query.Has("page") {
		return nil, nil
	}
	number, err := strconv.Atoi(query.Get("page"))
	size, said := defaultPageSize, "undefined"
	if err == nil && query.Has("page_size") {
		said = query.Get("page_size")
		size, err = strconv.Atoi(said)
	}
	if err != nil {
		return nil, badRequest("Pagination parameters are invalid")
	}
	if number < 1 || size < 1 || size > maxPageSize {
		return nil, &failure{http.StatusBadRequest, "invalid_pagination_parameters",
			fmt.Sprintf("Invalid pagination parameters: page number %d, page size %s", number, said)}
	}
	return &page{number, size}, nil
}

// bounds are the indexes of what is on the page of a list of n.
func (p *page) bounds(n int) (from, to int, err error) {
	if p.number > 1 && p.number > p.count(n) {
		return 0, 0, &failure{http.StatusBadRequest, "page_out_of_range",
			fmt.Sprintf("Page out of range, page: %d page size: %d, len: %d", p.number, p.size, n)}
	}
	return (p.number - 1) * p.size, min(p.number*p.size, n), nil
}

// count is how many pages a list of n has.
func (p *page) count(n int) int { return (n + p.size - 1) / p.size }

func (p *page) answer(items []object, filtered, total int) object {
	return object{
		{"filtered_count", filtered}, {"item_count", len(items)}, {"items", items},
		{"page", p.number}, {"page_count", p.count(filtered)}, {"page_size", p.size}, {"total_count", total},
	}
}

// plain is a list without pages: it can be sorted, and its columns chosen.
func plain[T any](r *request, items []T, show func(T) object) (any, error) {
	all := make([]object, 0, len(items))
	for _, item := range items {
		all = append(all, show(item))
	}
	if by := r.param("sort"); by != "" {
		order(all, by, r.is("sort_reverse"))
	}
	if c := r.param("columns"); c != "" {
		all = cut(all, strings.Split(c, ","))
	}
	return all, nil
}
