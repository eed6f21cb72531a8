;;; contexture-preview.el --- What the model will see  -*- lexical-binding: t; -*-

;; Copyright (C) 2026 The Contexture authors

;; Author: The Contexture authors
;; Keywords: tools, convenience
;; URL: https://github.com/contexture/contexture
;; SPDX-License-Identifier: GPL-3.0-or-later

;;; Commentary:

;; `contexture-preview' shows a context as the Markdown that a model
;; gets, byte for byte, in a buffer that cannot be edited.

;;; Code:

(require 'contexture)

(defconst contexture-preview-buffer "*contexture: preview*"
  "Name of the buffer that shows a context as the model gets it.")

(defvar contexture-preview-mode-map
  (let ((map (make-sparse-keymap)))
    (define-key map "q" #'quit-window)
    (define-key map "g" #'revert-buffer)
    (define-key map "l" #'contexture-list)
    (define-key map "w" #'contexture-copy)
    (define-key map "?" #'contexture-menu)
    (define-key map (kbd "SPC") #'scroll-up-command)
    (define-key map (kbd "DEL") #'scroll-down-command)
    map)
  "Keymap of `contexture-preview-mode'.")

(define-minor-mode contexture-preview-mode
  "Minor mode for viewing a context as the model gets it.
`contexture-preview' turns this on, in a Markdown mode if one is installed.

\\{contexture-preview-mode-map}"
  :lighter " Preview"
  (setq buffer-read-only contexture-preview-mode)
  (setq-local revert-buffer-function
              (if contexture-preview-mode #'contexture-preview--revert
                (default-value 'revert-buffer-function))))

;;;###autoload
(defun contexture-preview (manager)
  "Show the context MANAGER, a name or a list of names, as the model gets it.
By default these are this buffer's layers; with a prefix argument, choose
a context.  If this buffer's context is empty, another one is offered."
  (interactive (list (contexture--manager-to-show current-prefix-arg)))
  (let ((rendered (contexture--ask 'render-items
                                   (contexture--context-params manager)))
        (buffer (get-buffer-create contexture-preview-buffer)))
    (with-current-buffer buffer
      (unless contexture-preview-mode
        (contexture-preview--major-mode)
        (contexture-preview-mode))
      (add-hook 'kill-buffer-hook #'contexture-preview--unwatch nil t)
      (contexture-watch #'contexture-preview--changed)
      (setq contexture-manager manager)
      (contexture-preview--show rendered))
    (pop-to-buffer buffer)))

(defun contexture-preview--major-mode ()
  "Turn on the best major mode for Markdown that is installed."
  (delay-mode-hooks
    (cond ((fboundp 'gfm-mode) (gfm-mode))
          ((fboundp 'markdown-mode) (markdown-mode))
          (t (text-mode)
             (setq-local outline-regexp "#+ ")))))

(defun contexture-preview--show (rendered)
  "Show RENDERED, a result of `render-items', keeping point's line."
  (let ((inhibit-read-only t)
        (line (line-number-at-pos)))
    (erase-buffer)
    (insert (plist-get rendered :text))
    (contexture--show-hidden)
    (goto-char (contexture--line-position line))
    (set-buffer-modified-p nil)
    (setq header-line-format
          (replace-regexp-in-string
           "%" "%%" (format " %s, %s"
                            (contexture--capitalized (contexture--label contexture-manager))
                            (contexture--count (or (plist-get rendered :tokens) 0)
                                               "token"))))))

(defun contexture-preview--changed (method params)
  "Show the context again if METHOD with PARAMS says that it changed."
  (when-let* ((buffer (and (eq method 'context-changed)
                           (get-buffer contexture-preview-buffer))))
    (let ((manager (buffer-local-value 'contexture-manager buffer)))
      (when (contexture--of-context-p (plist-get params :manager) manager)
        (contexture-request-async
         'render-items (contexture--context-params manager)
         :success (apply-partially #'contexture-preview--update buffer manager))))))

(defun contexture-preview--update (buffer manager rendered)
  "Show RENDERED in BUFFER if that still shows MANAGER."
  (when (and (buffer-live-p buffer)
             (equal manager (buffer-local-value 'contexture-manager buffer)))
    (with-current-buffer buffer
      (contexture-preview--show rendered))))

(defun contexture-preview--unwatch ()
  "Clean up when the preview is killed."
  (contexture-unwatch #'contexture-preview--changed))

(defun contexture-preview--revert (&rest _)
  "Fetch the context again and show it."
  (contexture-preview--show
   (contexture--ask 'render-items (contexture--context-params contexture-manager))))

(provide 'contexture-preview)
;;; contexture-preview.el ends here
