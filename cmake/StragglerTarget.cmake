# straggler_target(TARGET): what every target of this project is compiled with. C++20, hidden symbols, includes written
# from the repository's root ("backend/observe/recorder.h"), warnings, and the sanitizers of STRAGGLER_SANITIZE. With clang
# the lock annotations are checked, and a violation is an error.

set(_straggler_sanitizers "" address undefined "address,undefined" thread)
if(NOT STRAGGLER_SANITIZE IN_LIST _straggler_sanitizers)
  message(FATAL_ERROR "STRAGGLER_SANITIZE is \"${STRAGGLER_SANITIZE}\"; it can be empty, address, undefined, "
                      "address,undefined or thread.")
endif()

function(straggler_target target)
  target_compile_features(${target} PUBLIC cxx_std_20)
  target_include_directories(${target} PUBLIC "${PROJECT_SOURCE_DIR}")
  set_target_properties(${target} PROPERTIES
    CXX_EXTENSIONS OFF
    CXX_VISIBILITY_PRESET hidden
    VISIBILITY_INLINES_HIDDEN ON
    POSITION_INDEPENDENT_CODE ON)
  target_compile_options(${target} PRIVATE
    -Wall -Wextra -Wshadow -Wconversion
    $<$<CXX_COMPILER_ID:Clang,AppleClang>:-Wthread-safety;-Werror=thread-safety>
    # g++ 12 at -O3 takes the copies inside "text" + std::string for overlapping ones (gcc.gnu.org, bug 105651).
    $<$<AND:$<CXX_COMPILER_ID:GNU>,$<VERSION_LESS:$<CXX_COMPILER_VERSION>,13>>:-Wno-restrict>
    $<$<BOOL:${STRAGGLER_WERROR}>:-Werror>)
  if(STRAGGLER_SANITIZE)
    target_compile_options(${target} PRIVATE
      -fsanitize=${STRAGGLER_SANITIZE} -fno-sanitize-recover=all -fno-omit-frame-pointer)
    target_link_options(${target} PRIVATE -fsanitize=${STRAGGLER_SANITIZE})
  endif()
  if(STRAGGLER_BUILD_FUZZERS)
    target_compile_options(${target} PRIVATE -fsanitize=fuzzer-no-link)
    target_link_options(${target} PRIVATE -fsanitize=fuzzer-no-link)
  endif()
endfunction()
