# Writes a C++ file that holds the built-in pages: cmake -DOUTPUT=... -DFOLDER=... -P embed.cmake
# Each file becomes an array of bytes, since string literals have a length limit in some compilers.
set(pages "/|index.html|text/html\\; charset=utf-8"
          "/chat.css|chat.css|text/css\\; charset=utf-8"
          "/chat.js|chat.js|text/javascript\\; charset=utf-8"
          "/icon.svg|icon.svg|image/svg+xml")
set(arrays "")
set(rows "")
set(index 0)
foreach(page IN LISTS pages)
  string(REPLACE "|" ";" parts "${page}")
  list(GET parts 0 path)
  list(GET parts 1 name)
  string(REGEX REPLACE "^[^|]*\\|[^|]*\\|" "" type "${page}")
  file(READ "${FOLDER}/${name}" bytes HEX)
  string(LENGTH "${bytes}" digits)
  math(EXPR size "${digits} / 2")
  string(REGEX REPLACE "([0-9a-f][0-9a-f])" "0x\\1," bytes "${bytes}")
  string(APPEND arrays "const unsigned char page_${index}[] = {${bytes}0};\n")
  string(APPEND rows "  {\"${path}\", \"${type}\", {reinterpret_cast<const char*>(page_${index}), ${size}}},\n")
  math(EXPR index "${index} + 1")
endforeach()
file(WRITE "${OUTPUT}" "#include \"io/web/web_files.hpp\"

namespace troupe {
namespace {

${arrays}
const web_file files[] = {
${rows}};

} // namespace

const web_file* find_web_file(std::string_view path) noexcept {
  for (const web_file& file : files)
    if (file.path == path)
      return &file;
  return nullptr;
}

} // namespace troupe
")
