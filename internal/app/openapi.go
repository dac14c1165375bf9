package app

import "agentsquad/internal/api"

// OpenAPI is the document of the API, made without a running server.
func OpenAPI() ([]byte, error) {
	s, err := api.New(api.Config{Version: Version})
	if err != nil {
		return nil, err
	}
	return s.OpenAPI(), nil
}
