add_library(deepinfer_test_main STATIC ${CMAKE_SOURCE_DIR}/tests/support/main.cc)
target_link_libraries(deepinfer_test_main PUBLIC GTest::gmock PRIVATE deepinfer_flags)

# deepinfer_test(unit/base DEPS ...): one gtest program from tests/unit/base/*_test.cc
# (helpers beside them may be any other .cc), whose tests carry the ctest label unit/base. A folder
# without sources adds nothing. Property tests draw from a fixed seed here, so that a change and not
# chance breaks them; run the program itself for others (RC_PARAMS=seed=N). With CPU_TARGETS the
# tests run once more for each CPU target, as TARGET.Suite.Name; targets that the processor lacks are
# skipped.
function(deepinfer_test folder)
  cmake_parse_arguments(ARG "CPU_TARGETS" "" "DEPS" ${ARGN})
  file(GLOB sources CONFIGURE_DEPENDS ${CMAKE_SOURCE_DIR}/tests/${folder}/*.cc)
  if(NOT sources)
    return()
  endif()
  string(REPLACE "/" "_" name ${folder})
  add_executable(test_${name} ${sources})
  deepinfer_resolve(deps ${ARG_DEPS})
  target_link_libraries(test_${name} PRIVATE deepinfer_flags ${deps} deepinfer_test_main)
  target_include_directories(test_${name} PRIVATE ${CMAKE_SOURCE_DIR})
  # What is tested is optimised in its library; test programs should build fast.
  target_compile_options(test_${name} PRIVATE -O1)
  target_compile_definitions(test_${name} PRIVATE DEEPINFER_SOURCE_DIR="${CMAKE_SOURCE_DIR}")
  gtest_discover_tests(test_${name} DISCOVERY_MODE PRE_TEST
                       PROPERTIES TIMEOUT 900 LABELS ${folder} ENVIRONMENT RC_PARAMS=seed=1)
  if(ARG_CPU_TARGETS)
    foreach(target IN LISTS DEEPINFER_CPU_TARGETS)
      gtest_discover_tests(
        test_${name} DISCOVERY_MODE PRE_TEST TEST_PREFIX ${target}.
        PROPERTIES TIMEOUT 900 LABELS ${folder} ENVIRONMENT DEEPINFER_CPU_TARGET=${target}
                   SKIP_RETURN_CODE 77)
    endforeach()
  endif()
endfunction()

# deepinfer_fuzz(name DEPS ...): tests/fuzz/<name>_fuzz.cc with seeds in
# tests/fuzz/corpus/<name>/. With DEEPINFER_LIBFUZZER it is a libFuzzer program;
# otherwise tests/fuzz/corpus_main.cc runs every seed once, as a test with the label fuzz. The
# target fuzzers builds them all.
add_custom_target(fuzzers)
function(deepinfer_fuzz name)
  cmake_parse_arguments(ARG "" "" "DEPS" ${ARGN})
  set(source ${CMAKE_SOURCE_DIR}/tests/fuzz/${name}_fuzz.cc)
  if(NOT EXISTS ${source})
    return()
  endif()
  deepinfer_resolve(deps ${ARG_DEPS})
  if(DEEPINFER_LIBFUZZER)
    add_executable(fuzz_${name} ${source})
    target_link_options(fuzz_${name} PRIVATE -fsanitize=fuzzer)
  else()
    add_executable(fuzz_${name} ${source} ${CMAKE_SOURCE_DIR}/tests/fuzz/corpus_main.cc)
    add_test(NAME fuzz_corpus_${name}
             COMMAND fuzz_${name} ${CMAKE_SOURCE_DIR}/tests/fuzz/corpus/${name})
    set_tests_properties(fuzz_corpus_${name} PROPERTIES LABELS fuzz TIMEOUT 300)
  endif()
  add_dependencies(fuzzers fuzz_${name})
  target_link_libraries(fuzz_${name} PRIVATE deepinfer_flags ${deps})
  target_include_directories(fuzz_${name} PRIVATE ${CMAKE_SOURCE_DIR})
endfunction()

# deepinfer_lint(name COMMAND ...): a check of the sources themselves, as test lint_<name>. Exit
# status 77 skips it (a tool is missing).
function(deepinfer_lint name)
  cmake_parse_arguments(ARG "" "" "COMMAND" ${ARGN})
  add_test(NAME lint_${name} COMMAND ${ARG_COMMAND} WORKING_DIRECTORY ${CMAKE_SOURCE_DIR})
  set_tests_properties(lint_${name} PROPERTIES LABELS lint TIMEOUT 300 SKIP_RETURN_CODE 77)
endfunction()

function(deepinfer_resolve out)
  set(deps)
  foreach(dep IN LISTS ARGN)
    if(dep MATCHES "::" OR dep MATCHES "^rapidcheck")
      list(APPEND deps ${dep})
    else()
      list(APPEND deps deepinfer_${dep})
    endif()
  endforeach()
  set(${out} ${deps} PARENT_SCOPE)
endfunction()
