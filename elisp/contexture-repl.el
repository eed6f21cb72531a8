;;; contexture-repl.el --- Other names of a few commands and options  -*- lexical-binding: t; -*-

;; Copyright (C) 2026 The Contexture authors

;; Author: The Contexture authors
;; Keywords: tools, convenience
;; URL: https://github.com/contexture/contexture
;; SPDX-License-Identifier: GPL-3.0-or-later

;;; Commentary:

;; Scripts that try Emacs packages side by side call a conversation with a
;; model a REPL.  They find it, and what they set and ask there, by these
;; names as well.

;;; Code:

(require 'contexture-conversation)

;;;###autoload
(defalias 'contexture-repl #'contexture-conversation)
(defalias 'contexture-repl-send #'contexture-conversation-send)
(defalias 'contexture-repl-copy-block #'contexture-conversation-copy-block)
;;;###autoload
(defalias 'contexture-current-manager #'contexture-adding-context)
;;;###autoload
(defvaralias 'contexture-scope 'contexture-add-to)
;;;###autoload
(defvaralias 'contexture-token-budget 'contexture-limit)

(provide 'contexture-repl)
;;; contexture-repl.el ends here
