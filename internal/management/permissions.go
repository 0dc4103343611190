package management

import (
	"slices"

	"github.com/dormousemq/dormouse/internal/access"
)

func shownPermission(p access.Permission) object {
	return object{{"user", p.User}, {"vhost", p.VHost}, {"configure", p.Configure}, {"write", p.Write}, {"read", p.Read}}
}

func shownTopicPermission(p access.TopicPermission) object {
	return object{{"user", p.User}, {"vhost", p.VHost}, {"exchange", p.Exchange}, {"write", p.Write}, {"read", p.Read}}
}

// permitAll gives the user of a request all permissions in a new virtual host.
func (h *Handler) permitAll(r *request, vhost string) error {
	return h.Users.PutPermission(r.http.Context(), access.Permission{
		User: r.user.Name(), VHost: vhost, Configure: ".*", Write: ".*", Read: ".*",
	})
}

func listPermissions(h *Handler, r *request) (any, error) {
	return plain(r, h.Users.Permissions(), shownPermission)
}

func listTopicPermissions(h *Handler, r *request) (any, error) {
	return plain(r, h.Users.TopicPermissions(), shownTopicPermission)
}

func permissionsOfUser(h *Handler, r *request) (any, error) {
	u, err := h.namedUser(r)
	if err != nil {
		return nil, err
	}
	all := slices.DeleteFunc(h.Users.Permissions(), func(p access.Permission) bool { return p.User != u.Name })
	return plain(r, all, shownPermission)
}

func topicPermissionsOfUser(h *Handler, r *request) (any, error) {
	u, err := h.namedUser(r)
	if err != nil {
		return nil, err
	}
	all := slices.DeleteFunc(h.Users.TopicPermissions(), func(p access.TopicPermission) bool { return p.User != u.Name })
	return plain(r, all, shownTopicPermission)
}

func permissionsOfVHost(h *Handler, r *request) (any, error) {
	host, err := h.namedHost(r)
	if err != nil {
		return nil, err
	}
	all := slices.DeleteFunc(h.Users.Permissions(), func(p access.Permission) bool { return p.VHost != host.Name() })
	return plain(r, all, shownPermission)
}

func topicPermissionsOfVHost(h *Handler, r *request) (any, error) {
	host, err := h.namedHost(r)
	if err != nil {
		return nil, err
	}
	all := slices.DeleteFunc(h.Users.TopicPermissions(), func(p access.TopicPermission) bool { return p.VHost != host.Name() })
	return plain(r, all, shownTopicPermission)
}

// permission is that of the user and virtual host of a path.
func (h *Handler) permission(r *request) (access.Permission, bool) {
	all := h.Users.Permissions()
	i := slices.IndexFunc(all, func(p access.Permission) bool {
		return p.User == r.variables["user"] && p.VHost == r.variables["in"]
	})
	if i < 0 {
		return access.Permission{}, false
	}
	return all[i], true
}

// topicPermissions are those of the user and virtual host of a path.
func (h *Handler) topicPermissions(r *request) []access.TopicPermission {
	return slices.DeleteFunc(h.Users.TopicPermissions(), func(p access.TopicPermission) bool {
		return p.User != r.variables["user"] || p.VHost != r.variables["in"]
	})
}

func getPermission(h *Handler, r *request) (any, error) {
	p, has := h.permission(r)
	if !has {
		return nil, notFound()
	}
	return shownPermission(p), nil
}

func putPermission(h *Handler, r *request) (any, error) {
	body, err := r.body()
	if err != nil {
		return nil, err
	}
	if err := body.needs("configure", "write", "read"); err != nil {
		return nil, err
	}
	p := access.Permission{User: r.variables["user"], VHost: r.variables["in"]}
	for name, at := range map[string]*string{"configure": &p.Configure, "write": &p.Write, "read": &p.Read} {
		if *at, err = body.text(name); err != nil {
			return nil, err
		}
	}
	_, existed := h.permission(r)
	if err := h.Users.PutPermission(r.http.Context(), p); err != nil {
		return nil, permissionFailure(err)
	}
	return madeUnless(existed), nil
}

func deletePermission(h *Handler, r *request) (any, error) {
	existed, err := h.Users.DeletePermission(r.http.Context(), r.variables["user"], r.variables["in"])
	if err == nil && !existed {
		err = notFound()
	}
	return nil, err
}

func getTopicPermissions(h *Handler, r *request) (any, error) {
	all := h.topicPermissions(r)
	if len(all) == 0 {
		return nil, notFound()
	}
	return plain(r, all, shownTopicPermission)
}

func putTopicPermission(h *Handler, r *request) (any, error) {
	body, err := r.body()
	if err != nil {
		return nil, err
	}
	if err := body.needs("exchange", "write", "read"); err != nil {
		return nil, err
	}
	p := access.TopicPermission{User: r.variables["user"], VHost: r.variables["in"]}
	for name, at := range map[string]*string{"exchange": &p.Exchange, "write": &p.Write, "read": &p.Read} {
		if *at, err = body.text(name); err != nil {
			return nil, err
		}
	}
	existed := len(h.topicPermissions(r)) > 0
	if err := h.Users.PutTopicPermission(r.http.Context(), p); err != nil {
		return nil, permissionFailure(err)
	}
	return madeUnless(existed), nil
}

// deleteTopicPermissions deletes those for all exchanges, or with {exchange} for one.
func deleteTopicPermissions(h *Handler, r *request) (any, error) {
	exchange, one := r.variables["exchange"]
	deleted := false
	for _, p := range h.topicPermissions(r) {
		if one && p.Exchange != exchange {
			continue
		}
		existed, err := h.Users.DeleteTopicPermission(r.http.Context(), p.User, p.VHost, p.Exchange)
		if err != nil {
			return nil, err
		}
		deleted = deleted || existed
	}
	if !deleted {
		return nil, notFound()
	}
	return nil, nil
}

// madeUnless is the answer to a PUT.
func madeUnless(existed bool) any {
	if existed {
		return nil
	}
	return created("")
}
