# straggler_find_gtest() and straggler_find_benchmark(): the system's GoogleTest or Google Benchmark where it is installed,
# else a pinned release that CMake fetches, else one sentence that says what to install.

include_guard(GLOBAL)
include(FetchContent)

# Fetches a release once, checks it against its SHA256, and adds its targets, whose headers count as the system's.
function(_straggler_fetch name url sha256 package)
  set(archive "${CMAKE_BINARY_DIR}/_deps/${name}.tar.gz")
  if(NOT EXISTS "${archive}")
    message(STATUS "${name} is not installed: fetching ${url}")
    file(DOWNLOAD "${url}" "${archive}" STATUS status TLS_VERIFY ON INACTIVITY_TIMEOUT 60)
  endif()
  file(SHA256 "${archive}" fetched)
  if(NOT fetched STREQUAL sha256)
    file(REMOVE "${archive}")
    message(FATAL_ERROR "${name} is not installed and cannot be fetched from ${url}: apt-get install ${package}")
  endif()
  FetchContent_Declare(${name} URL "${archive}" URL_HASH SHA256=${sha256} DOWNLOAD_EXTRACT_TIMESTAMP ON)
  FetchContent_MakeAvailable(${name})
  foreach(target IN LISTS ARGN)
    get_target_property(includes ${target} INTERFACE_INCLUDE_DIRECTORIES)
    set_target_properties(${target} PROPERTIES INTERFACE_SYSTEM_INCLUDE_DIRECTORIES "${includes}")
  endforeach()
endfunction()

# Gives GTest::gtest_main. A macro, since find_package's imported targets belong to the caller's folder.
macro(straggler_find_gtest)
  find_package(GTest 1.12 QUIET)
  if(NOT GTest_FOUND)
    set(BUILD_GMOCK OFF)
    set(INSTALL_GTEST OFF)
    _straggler_fetch(googletest
      https://github.com/google/googletest/archive/refs/tags/v1.14.0.tar.gz
      8ad598c73ad796e0d8280b082cebd82a630d73e73cd3c70057938a6501bba5d7
      libgtest-dev gtest gtest_main)
  endif()
endmacro()

# Gives benchmark::benchmark_main.
macro(straggler_find_benchmark)
  find_package(benchmark 1.7 QUIET)
  if(NOT benchmark_FOUND)
    set(BENCHMARK_ENABLE_TESTING OFF)
    set(BENCHMARK_ENABLE_INSTALL OFF)
    _straggler_fetch(googlebenchmark
      https://github.com/google/benchmark/archive/refs/tags/v1.8.3.tar.gz
      6bc180a57d23d4d9515519f92b0c83d61b05b5bab188961f36ac7b06b0d9e9ce
      libbenchmark-dev benchmark benchmark_main)
  endif()
endmacro()
