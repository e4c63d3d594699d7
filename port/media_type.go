package port

import (
	"encoding/base64"
	"slices"
	"strings"
)

// imageTypes are the pictures that every provider sees.
var imageTypes = []string{"image/png", "image/jpeg", "image/gif", "image/webp"}

const pdfType = "application/pdf"

// IsImage says whether models see pictures of a media type, spelled as [MediaType]
// answers it.
func IsImage(mediaType string) bool { return slices.Contains(imageTypes, mediaType) }

// MediaType answers a media type as providers spell it: in small letters, without
// parameters, and a JPEG by its name.
func MediaType(given string) string {
	kind, _, _ := strings.Cut(strings.ToLower(given), ";")
	if kind = strings.TrimSpace(kind); kind == "image/jpg" || kind == "image/pjpeg" {
		return "image/jpeg"
	}
	return kind
}

// signatures are what files begin with. A provider reads them and refuses a file that
// is called something else; what a name ends with is what most programs call it by.
var signatures = []struct {
	at               int
	begin, mediaType string
}{
	{0, "\x89PNG", "image/png"},
	{0, "\xff\xd8\xff", "image/jpeg"},
	{0, "GIF8", "image/gif"},
	{8, "WEBP", "image/webp"},
	{0, "%PDF-", pdfType},
	{0, "BM", "image/bmp"},
	{0, "II*\x00", "image/tiff"},
	{0, "MM\x00*", "image/tiff"},
	{4, "ftypavif", "image/avif"},
	{4, "ftyphei", "image/heic"},
	{4, "ftypmif1", "image/heic"},
}

// typeOf answers what base64 is by its first bytes, or nothing where they do not say.
func typeOf(data string) string {
	begin, _ := base64.StdEncoding.DecodeString(data[:min(len(data), 24)])
	for _, s := range signatures {
		if len(begin) > s.at && strings.HasPrefix(string(begin[s.at:]), s.begin) {
			return s.mediaType
		}
	}
	return ""
}

// textTypes are the types of texts that are not called text.
var textTypes = strings.Fields(`application/json application/x-ndjson application/jsonl application/xml
	application/yaml application/x-yaml application/toml application/csv application/sql application/graphql
	application/javascript application/typescript application/x-sh application/x-python`)

// isText says whether a file of a media type is text.
func isText(mediaType string) bool {
	_, suffix, _ := strings.Cut(mediaType, "+")
	return strings.HasPrefix(mediaType, "text/") || suffix == "json" || suffix == "xml" || suffix == "yaml" || slices.Contains(textTypes, mediaType)
}

// fileEndings are the files that the Responses API reads, by what their names end with:
// it knows them by nothing else. Chat Completions and Messages take the first alone.
var fileEndings = []struct{ mediaType, ending string }{
	{pdfType, ".pdf"},
	{"application/vnd.openxmlformats-officedocument.wordprocessingml.document", ".docx"},
	{"application/vnd.openxmlformats-officedocument.spreadsheetml.sheet", ".xlsx"},
	{"application/vnd.openxmlformats-officedocument.presentationml.presentation", ".pptx"},
	{"application/vnd.oasis.opendocument.text", ".odt"},
	{"application/msword", ".doc"},
	{"application/vnd.ms-excel", ".xls"},
	{"application/vnd.ms-powerpoint", ".ppt"},
	{"application/rtf", ".rtf"},
}

// fileEnding answers what the name of a file ends with, or nothing where no provider
// reads it.
func fileEnding(mediaType string) string {
	for _, f := range fileEndings {
		if f.mediaType == mediaType {
			return f.ending
		}
	}
	return ""
}

// fileTypes lists the types of fileEndings.
func fileTypes() []string {
	var types []string
	for _, f := range fileEndings {
		types = append(types, f.mediaType)
	}
	return types
}
