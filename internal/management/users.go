package management

import (
	"encoding/base64"
	"errors"
	"maps"
	"slices"

	"github.com/dormousemq/dormouse/internal/access"
)

func whoAmI(_ *Handler, r *request) (any, error) {
	return object{{"name", r.user.Name()}, {"tags", r.user.Tags()}, {"is_internal_user", true}}, nil
}

func shownUser(u access.User) object {
	limits := object{}
	for _, name := range slices.Sorted(maps.Keys(u.Limits)) {
		limits.add(name, u.Limits[name])
	}
	return object{
		{"name", u.Name}, {"password_hash", u.PasswordHash}, {"hashing_algorithm", u.HashingAlgorithm},
		{"tags", append([]string{}, u.Tags...)}, {"limits", limits},
	}
}

func listUsers(h *Handler, r *request) (any, error) {
	return usersThat(h, r, func(access.User) bool { return true })
}

func listUsersWithoutPermissions(h *Handler, r *request) (any, error) {
	permitted := map[string]bool{}
	for _, p := range h.Users.Permissions() {
		permitted[p.User] = true
	}
	return usersThat(h, r, func(u access.User) bool { return !permitted[u.Name] })
}

func usersThat(h *Handler, r *request, wanted func(access.User) bool) (any, error) {
	all := slices.DeleteFunc(h.Users.Users(), func(u access.User) bool { return !wanted(u) })
	return listing[access.User]{items: all, name: func(u access.User) string { return u.Name }, show: shownUser}.answer(r)
}

// namedUser is the user that a path names.
func (h *Handler) namedUser(r *request) (access.User, error) {
	if u, ok := h.Users.User(r.variables["user"]); ok {
		return u, nil
	}
	return access.User{}, notFound()
}

func getUser(h *Handler, r *request) (any, error) {
	u, err := h.namedUser(r)
	if err != nil {
		return nil, err
	}
	return shownUser(u), nil
}

func putUser(h *Handler, r *request) (any, error) {
	body, err := r.body()
	if err != nil {
		return nil, err
	}
	old, existed := h.Users.User(r.variables["user"])
	u := access.User{Name: r.variables["user"], Limits: old.Limits}
	if _, has := body["tags"]; !has {
		return nil, badRequest("tags_not_present")
	}
	if u.Tags, err = body.tags("tags"); err != nil {
		return nil, err
	}
	if err := setPassword(&u, body); err != nil {
		return nil, err
	}
	if err := h.Users.PutUser(r.http.Context(), u); err != nil {
		return nil, badRequest(err.Error())
	}
	if !existed {
		return created(""), nil
	}
	return nil, nil
}

// setPassword takes the password or its hash out of the body. Without either the user
// cannot log in.
func setPassword(u *access.User, body fields) error {
	password, err := body.text("password")
	if err != nil {
		return err
	}
	hash, err := body.text("password_hash")
	if err != nil {
		return err
	}
	_, hashed := body["password_hash"]
	switch {
	case password != "" && hashed:
		return badRequest("Cannot specify both password and password_hash for a user")
	case password != "":
		u.PasswordHash, u.HashingAlgorithm = access.HashPassword(password), access.SHA256
		return nil
	}
	if _, err := base64.StdEncoding.DecodeString(hash); err != nil {
		return badRequest([]any{"not_base64", hash})
	}
	u.PasswordHash = hash
	u.HashingAlgorithm, err = body.text("hashing_algorithm")
	return err
}

func deleteUser(h *Handler, r *request) (any, error) {
	existed, err := h.Users.DeleteUser(r.http.Context(), r.variables["user"])
	if err == nil && !existed {
		err = notFound()
	}
	return nil, err
}

func deleteUsers(h *Handler, r *request) (any, error) {
	body, err := r.body()
	if err != nil {
		return nil, err
	}
	if err := body.needs("users"); err != nil {
		return nil, err
	}
	names, err := body.tags("users")
	if err != nil {
		return nil, err
	}
	for _, name := range names {
		if _, err := h.Users.DeleteUser(r.http.Context(), name); err != nil {
			return nil, err
		}
	}
	return nil, nil
}

func hashPassword(_ *Handler, r *request) (any, error) {
	return object{{"ok", access.HashPassword(r.variables["password"])}}, nil
}

// permissionFailure is RabbitMQ's answer to a permission that cannot be set.
func permissionFailure(err error) error {
	if wrong, ok := errors.AsType[*access.PatternError](err); ok {
		return badRequest([]any{"invalid_regexp", wrong.Pattern, wrong.Err.Error()})
	}
	if errors.Is(err, access.ErrNoUser) || errors.Is(err, access.ErrNoVHost) {
		return badRequest("vhost_or_user_not_found")
	}
	return err
}
