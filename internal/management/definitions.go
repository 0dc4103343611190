package management

import (
	"errors"
	"fmt"
	"io"
	"mime"
	"net/http"

	"github.com/dormousemq/dormouse/internal/definitions"
	"github.com/dormousemq/dormouse/internal/session"
)

// ofVariable names the virtual host of paths that say in their own way that it is
// missing.
const ofVariable = "of"

// rawJSON is an answer that is JSON already.
type rawJSON []byte

func (h *Handler) definitions() definitions.Broker {
	return definitions.Broker{Directory: h.Users, Hosts: h.Hosts, Globals: h.globals, Logger: h.Logger}
}

func (h *Handler) about() definitions.About {
	return definitions.About{Version: session.Version, Cluster: h.clusterName()}
}

func getDefinitions(h *Handler, _ *request) (any, error) {
	text, err := definitions.Export(h.definitions(), h.about())
	return rawJSON(text), err
}

func getDefinitionsOf(h *Handler, r *request) (any, error) {
	host := h.Hosts.Host(r.variables[ofVariable])
	if host == nil {
		return nil, badRequest("vhost_not_found")
	}
	text, err := definitions.ExportOf(host, h.about())
	return rawJSON(text), err
}

func postDefinitions(h *Handler, r *request) (any, error) {
	text, err := r.file()
	if err != nil || len(text) == 0 {
		return nil, err
	}
	return nil, definitionFailure(definitions.Import(r.http.Context(), h.definitions(), text))
}

func postDefinitionsOf(h *Handler, r *request) (any, error) {
	name := r.variables[ofVariable]
	if h.Hosts.Host(name) == nil {
		return nil, unknown("vhost_not_found")
	}
	text, err := r.file()
	if err != nil || len(text) == 0 {
		return nil, err
	}
	return nil, definitionFailure(definitions.ImportInto(r.http.Context(), h.definitions(), name, text))
}

// definitionFailure says what is wrong with definitions.
func definitionFailure(err error) error {
	if err == nil {
		return nil
	}
	if errors.Is(err, definitions.ErrJSON) {
		return badRequest("failed_to_parse_json")
	}
	if missing, ok := errors.AsType[*definitions.NoVHostError](err); ok {
		return badRequest(fmt.Sprintf("Please create virtual host %q prior to importing definitions.", missing.VHost))
	}
	return badRequest(err.Error())
}

// file is the body, or the part named "file" of the body of a form.
func (r *request) file() ([]byte, error) {
	kind, _, _ := mime.ParseMediaType(r.http.Header.Get("Content-Type"))
	if kind != "multipart/form-data" {
		return r.text()
	}
	parts, err := r.http.MultipartReader()
	if err != nil {
		return nil, badRequest("the form cannot be read: " + err.Error())
	}
	for {
		part, err := parts.NextPart()
		if errors.Is(err, io.EOF) {
			return nil, badRequest(`the form has no part named "file"`)
		}
		if err != nil {
			return nil, bodyFailure(err)
		}
		if part.FormName() != "file" {
			continue
		}
		text, err := io.ReadAll(part)
		return text, bodyFailure(err)
	}
}

// download has a browser keep an answer as a file, if the query asks for that.
func download(w http.ResponseWriter, r *request) {
	if name := r.param("download"); name != "" {
		w.Header().Set("Content-Disposition", mime.FormatMediaType("attachment", map[string]string{"filename": name}))
	}
}
