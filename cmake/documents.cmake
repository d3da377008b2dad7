# The binary, and what it writes about itself: manual pages and shell completions.
set(documents ${PROJECT_BINARY_DIR}/documents)
add_custom_command(OUTPUT ${documents}/made
  COMMAND ${CMAKE_COMMAND} -E rm -rf ${documents}
  COMMAND once manual ${documents}/man1
  COMMAND ${CMAKE_COMMAND} -E make_directory ${documents}/completion
  COMMAND once completion bash > ${documents}/completion/once
  COMMAND once completion zsh > ${documents}/completion/_once
  COMMAND once completion fish > ${documents}/completion/once.fish
  COMMAND ${CMAKE_COMMAND} -E touch ${documents}/made
  DEPENDS once VERBATIM)
# In "all" too: everything that is installed has to be there after a plain build.
add_custom_target(documents ALL DEPENDS ${documents}/made)
add_dependencies(product documents)

install(TARGETS once RUNTIME DESTINATION ${CMAKE_INSTALL_BINDIR} COMPONENT binary)
install(DIRECTORY ${documents}/man1 DESTINATION ${CMAKE_INSTALL_MANDIR} COMPONENT binary)
set(share ${CMAKE_INSTALL_DATAROOTDIR})
install(FILES ${documents}/completion/once
  DESTINATION ${share}/bash-completion/completions COMPONENT binary)
install(FILES ${documents}/completion/_once
  DESTINATION ${share}/zsh/vendor-completions COMPONENT binary)
install(FILES ${documents}/completion/once.fish
  DESTINATION ${share}/fish/vendor_completions.d COMPONENT binary)
# once@NAME runs /etc/once/NAME.toml.
install(FILES ${PROJECT_SOURCE_DIR}/cmake/once@.service
  DESTINATION lib/systemd/system COMPONENT binary)
