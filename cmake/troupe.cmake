# Helpers that every folder uses: one static library a folder, one test program a folder.

# -Wrestrict gives false alarms on std::string's operator+ in GCC 12 (GCC bug 105651).
add_library(troupe_flags INTERFACE)
target_compile_options(troupe_flags INTERFACE
  $<$<COMPILE_LANGUAGE:CXX>:-Wall -Wextra -Wconversion -Wshadow -Wno-restrict -Werror>)
target_include_directories(troupe_flags INTERFACE ${CMAKE_SOURCE_DIR})
if(TROUPE_SANITIZE STREQUAL "address")
  # CAF 0.17's headers bind references to null in one place (caf/detail/init_fun_factory.hpp); nothing of ours does.
  add_compile_options(-fsanitize=address,undefined -fno-sanitize=null -fno-omit-frame-pointer -fno-sanitize-recover=undefined)
  add_link_options(-fsanitize=address,undefined)
elseif(TROUPE_SANITIZE STREQUAL "thread")
  # Boost.Asio has lone fences around handlers, which the sanitizer can't follow; its queues' mutexes order what we rely on.
  add_compile_options(-fsanitize=thread -fno-omit-frame-pointer -Wno-tsan)
  add_link_options(-fsanitize=thread)
endif()

# troupe_library(name SOURCES ... LINK ...): static library troupe_<name>.
function(troupe_library name)
  cmake_parse_arguments(arg "" "" "SOURCES;LINK;LINK_PRIVATE" ${ARGN})
  add_library(troupe_${name} STATIC ${arg_SOURCES})
  target_link_libraries(troupe_${name} PUBLIC ${arg_LINK} PRIVATE troupe_flags ${arg_LINK_PRIVATE})
  target_include_directories(troupe_${name} PUBLIC ${CMAKE_SOURCE_DIR})
endfunction()

# AddressSanitizer's quarantine of freed memory would look like a leak to tests that watch the resident size.
set(troupe_test_environment "ASAN_OPTIONS=quarantine_size_mb=4;TSAN_OPTIONS=suppressions=${CMAKE_SOURCE_DIR}/tests/tsan.supp")
# Sanitized code is several times slower: longer limits, fewer seeds.
set(troupe_timeout_factor 1)
if(TROUPE_SANITIZE)
  set(troupe_timeout_factor 6)
  list(APPEND troupe_test_environment TROUPE_SEEDS=15 TROUPE_SANITIZED=${TROUPE_SANITIZE})
endif()

# troupe_test(name LABEL unit SOURCES ... LINK ...): doctest program test_<name>, one ctest entry.
function(troupe_test name)
  cmake_parse_arguments(arg "" "LABEL;TIMEOUT" "SOURCES;LINK" ${ARGN})
  add_executable(test_${name} ${CMAKE_SOURCE_DIR}/tests/support/main.cpp ${arg_SOURCES})
  target_link_libraries(test_${name} PRIVATE troupe_flags ${arg_LINK})
  target_include_directories(test_${name} SYSTEM PRIVATE ${doctest_INCLUDE_DIRS} /usr/include/doctest)
  target_compile_definitions(test_${name} PRIVATE TROUPE_SOURCE_DIR="${CMAKE_SOURCE_DIR}")
  if(NOT arg_TIMEOUT)
    set(arg_TIMEOUT 120)
  endif()
  math(EXPR arg_TIMEOUT "${arg_TIMEOUT} * ${troupe_timeout_factor}")
  add_test(NAME ${name} COMMAND test_${name})
  set_tests_properties(${name} PROPERTIES LABELS "${arg_LABEL}" TIMEOUT ${arg_TIMEOUT} ENVIRONMENT "${troupe_test_environment}")
endfunction()
