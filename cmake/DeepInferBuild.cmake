# Build rules shared by every folder: language level, warnings, and the three
# shapes of target (library, executable, test).

set(CMAKE_CXX_STANDARD 20)
set(CMAKE_CXX_STANDARD_REQUIRED ON)
set(CMAKE_CXX_EXTENSIONS OFF)
set(CMAKE_EXPORT_COMPILE_COMMANDS ON)
set(CMAKE_POSITION_INDEPENDENT_CODE ON)
if(NOT CMAKE_BUILD_TYPE)
  set(CMAKE_BUILD_TYPE Release)
endif()

find_program(DEEPINFER_CCACHE ccache)
if(DEEPINFER_CCACHE AND NOT CMAKE_CXX_COMPILER_LAUNCHER)
  set(CMAKE_CXX_COMPILER_LAUNCHER ${DEEPINFER_CCACHE})
endif()

# Hot loops (kernels, tokenizer) ask for -O3 themselves; elsewhere it only costs build time.
set(CMAKE_CXX_FLAGS_RELEASE "-O2 -DNDEBUG")
# Sanitizers: line numbers are all a report needs.
set(CMAKE_CXX_FLAGS_RELWITHDEBINFO "-O1 -g1")

set(DEEPINFER_SANITIZE "" CACHE STRING "Value of -fsanitize= for every target (empty: none)")
option(DEEPINFER_LIBFUZZER "Link the fuzz targets with libFuzzer (clang only)" OFF)

add_library(deepinfer_flags INTERFACE)
# -ffp-contract=off: a product and a sum are two roundings on every target, so
# results do not depend on which instructions the compiler picks.
target_compile_options(deepinfer_flags INTERFACE -Wall -Wextra -Werror -ffp-contract=off)
# g++ 12 sees overlapping copies in std::string concatenation where there are none (GCC PR 105651).
if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU" AND CMAKE_CXX_COMPILER_VERSION VERSION_LESS 13)
  target_compile_options(deepinfer_flags INTERFACE -Wno-restrict)
endif()
target_include_directories(deepinfer_flags INTERFACE ${CMAKE_SOURCE_DIR}/src
                                                     ${CMAKE_SOURCE_DIR}/include)
find_package(Threads REQUIRED)
target_link_libraries(deepinfer_flags INTERFACE Threads::Threads)
if(DEEPINFER_SANITIZE)
  target_compile_definitions(deepinfer_flags INTERFACE DEEPINFER_NO_MULTIVERSION)
  target_compile_options(deepinfer_flags INTERFACE -fsanitize=${DEEPINFER_SANITIZE}
                                                   -fno-omit-frame-pointer -fno-sanitize-recover=all)
  target_link_options(deepinfer_flags INTERFACE -fsanitize=${DEEPINFER_SANITIZE})
endif()
if(DEEPINFER_LIBFUZZER)
  target_compile_options(deepinfer_flags INTERFACE -fsanitize=fuzzer-no-link)
endif()

# deepinfer_library(base DEPS ...): static library deepinfer::base from src/base/*.cc.
# Slashes become underscores in the target's name. A folder without sources is
# an interface library.
function(deepinfer_library folder)
  cmake_parse_arguments(ARG "" "" "DEPS;PRIVATE" ${ARGN})
  string(REPLACE "/" "_" name ${folder})
  file(GLOB sources CONFIGURE_DEPENDS ${CMAKE_SOURCE_DIR}/src/${folder}/*.cc)
  set(deps)
  foreach(dep IN LISTS ARG_DEPS)
    if(dep MATCHES "::")
      list(APPEND deps ${dep})
    else()
      string(REPLACE "/" "_" dep ${dep})
      list(APPEND deps deepinfer_${dep})
    endif()
  endforeach()
  if(sources)
    add_library(deepinfer_${name} STATIC ${sources})
    target_link_libraries(deepinfer_${name} PUBLIC deepinfer_flags ${deps} PRIVATE ${ARG_PRIVATE})
  else()
    add_library(deepinfer_${name} INTERFACE)
    target_link_libraries(deepinfer_${name} INTERFACE deepinfer_flags ${deps})
  endif()
  add_library(deepinfer::${name} ALIAS deepinfer_${name})
endfunction()

function(deepinfer_executable name)
  cmake_parse_arguments(ARG "" "FOLDER" "DEPS" ${ARGN})
  file(GLOB sources CONFIGURE_DEPENDS ${CMAKE_SOURCE_DIR}/${ARG_FOLDER}/*.cc)
  if(NOT sources)
    return()
  endif()
  set(deps)
  foreach(dep IN LISTS ARG_DEPS)
    if(dep MATCHES "::")
      list(APPEND deps ${dep})
    else()
      list(APPEND deps deepinfer_${dep})
    endif()
  endforeach()
  add_executable(${name} ${sources})
  target_link_libraries(${name} PRIVATE deepinfer_flags ${deps})
endfunction()
