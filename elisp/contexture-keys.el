;;; contexture-keys.el --- Where the commands are, and their keys  -*- lexical-binding: t; -*-

;; Copyright (C) 2026 The Contexture authors

;; Author: The Contexture authors
;; Keywords: tools, convenience
;; URL: https://github.com/contexture/contexture
;; SPDX-License-Identifier: GPL-3.0-or-later

;;; Commentary:

;; The keymap of all commands, and autoloads for those outside
;; contexture.el, for users who load that file without a package's
;; autoloads.  contexture.el loads this file.

;;; Code:

;;;; Where the commands are

(autoload 'contexture-add-symbol "contexture-symbol" nil t)
(autoload 'contexture-defun-at-point "contexture-defun")
(autoload 'contexture-sources--block-selection "contexture-sources")
(autoload 'contexture-sources--capture-rectangle "contexture-sources")
(autoload 'contexture-list "contexture-list" nil t)
(autoload 'contexture-preview "contexture-preview" nil t)
(dolist (entry '(("contexture-sources"
                  contexture-add-dwim contexture-add-kill contexture-add-diff
                  contexture-add-diagnostics contexture-add-compilation)
                 ("contexture-tree"
                  contexture-add-directory contexture-add-project contexture-cancel)
                 ("contexture-menu" contexture-menu contexture-session-menu)
                 ("contexture-agents" contexture-send-to-agent)
                 ("contexture-session"
                  contexture-session-open contexture-session-new
                  contexture-session-switch contexture-session-rename
                  contexture-session-delete contexture-session-restore)
                 ("contexture-session-edit"
                  contexture-session-add-message contexture-session-add-region
                  contexture-session-checkpoint contexture-session-rollback
                  contexture-session-undo-rollback contexture-session-fork
                  contexture-session-prune contexture-session-summarize
                  contexture-session-undo contexture-session-redo
                  contexture-session-restore-revision
                  contexture-session-configure)
                 ("contexture-session-show"
                  contexture-session-transcript contexture-session-search
                  contexture-session-export)
                 ("contexture-session-import" contexture-session-import)
                 ("contexture-session-line" contexture-session-mode-line-mode)
                 ("contexture-dashboard" contexture-dashboard)
                 ("contexture-explain" contexture-explain)
                 ("contexture-mode" contexture-mode contexture-global-mode)
                 ("contexture-gptel" contexture-gptel-mode)
                 ("contexture-agent-shell" contexture-agent-shell-mode)
                 ("contexture-doctor" contexture-doctor)
                 ("contexture-setup" contexture-setup-agent)
                 ("contexture-tools" contexture-tools-on contexture-tools-off)
                 ("contexture-install" contexture-install-server)
                 ("contexture-info" contexture-info)
                 ("contexture-repl" contexture-repl)
                 ("contexture-provider" contexture-configure-provider)
                 ("contexture-trust"
                  contexture-trust-project contexture-distrust-project)
                 ("contexture-session-views" contexture-session-views)
                 ("contexture-repl-code"
                  contexture-explain-code contexture-document-defun
                  contexture-fix-error contexture-review-code
                  contexture-write-tests contexture-send-region
                  contexture-rewrite contexture-insert-last-response)
                 ("contexture-lisp"
                  contexture-lisp-add-symbol contexture-lisp-add-history
                  contexture-lisp-add-error contexture-lisp-add-inspector
                  contexture-lisp-add-note)
                 ("contexture-slime" contexture-slime-mode)
                 ("contexture-sly" contexture-sly-mode)
                 ("contexture-mention"
                  contexture-mention-mode contexture-global-mention-mode)
                 ("contexture-sets"
                  contexture-remove contexture-freeze contexture-clear contexture-undo
                  contexture-redo contexture-refresh contexture-set-capacity contexture-switch
                  contexture-save-set contexture-load-set contexture-drop-set)))
  (dolist (command (cdr entry))
    (autoload command (car entry) nil t)))

(autoload 'contexture-session-map "contexture-session" nil nil 'keymap)
(autoload 'contexture-lisp-map "contexture-lisp" nil nil 'keymap)
(autoload 'contexture-define-tool "contexture-tools")
(autoload 'contexture-lisp-connected-p "contexture-lisp")
(autoload 'contexture-mention-at-point "contexture-mention")
(autoload 'contexture-mention-in-string "contexture-mention-read")

;;;; Keys

;;;###autoload (autoload 'contexture-command-map "contexture" nil nil 'keymap)
(defvar contexture-command-map
  (let ((map (make-sparse-keymap)))
    (define-key map "r" #'contexture-add-region)
    (define-key map "b" #'contexture-add-buffer)
    (define-key map "d" #'contexture-add-defun)
    (define-key map "f" #'contexture-add-file)
    (define-key map "s" #'contexture-add-symbol)
    (define-key map "c" #'contexture-clear)
    (define-key map "u" #'contexture-undo)
    (define-key map "U" #'contexture-redo)
    (define-key map "l" #'contexture-list)
    (define-key map "p" #'contexture-preview)
    (define-key map "w" #'contexture-copy)
    (define-key map "i" #'contexture-insert)
    (define-key map "a" #'contexture-add-dwim)
    (define-key map "t" #'contexture-add-directory)
    (define-key map "P" #'contexture-add-project)
    (define-key map "k" #'contexture-add-kill)
    (define-key map "e" #'contexture-add-diagnostics)
    (define-key map "v" #'contexture-add-diff)
    (define-key map "o" #'contexture-add-compilation)
    (define-key map "x" #'contexture-remove)
    (define-key map "Z" #'contexture-freeze)
    (define-key map "S" #'contexture-save-set)
    (define-key map "L" #'contexture-load-set)
    (define-key map "D" #'contexture-drop-set)
    (define-key map "m" #'contexture-switch)
    (define-key map "N" #'contexture-send-to-agent)
    (define-key map "q" #'contexture-cancel)
    (define-key map "g" #'contexture-refresh)
    (define-key map "C" #'contexture-set-capacity)
    (define-key map "M" #'contexture-mode)
    (define-key map "R" #'contexture-repl)
    (define-key map "E" #'contexture-explain-code)
    (define-key map "O" #'contexture-document-defun)
    (define-key map "F" #'contexture-fix-error)
    (define-key map "V" #'contexture-review-code)
    (define-key map "T" #'contexture-write-tests)
    (define-key map "A" #'contexture-send-region)
    (define-key map "W" #'contexture-rewrite)
    (define-key map "Y" #'contexture-insert-last-response)
    (define-key map "K" #'contexture-configure-provider)
    (define-key map "J" #'contexture-connect)
    (define-key map "Q" #'contexture-disconnect)
    (define-key map "I" #'contexture-info)
    (define-key map "H" #'contexture-doctor)
    (define-key map "n" 'contexture-session-map)
    (define-key map "z" 'contexture-lisp-map)
    (define-key map "?" #'contexture-menu)
    map)
  "Keymap of Contexture's commands, bound to no key.
Bind it to a prefix of your own:

    (global-set-key (kbd \"C-c x\") \\='contexture-command-map)")
(defalias 'contexture-command-map contexture-command-map)

(provide 'contexture-keys)
;;; contexture-keys.el ends here
