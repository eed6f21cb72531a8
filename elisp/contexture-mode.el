;;; contexture-mode.el --- Keep a buffer's context in view  -*- lexical-binding: t; -*-

;; Copyright (C) 2026 The Contexture authors

;; Author: The Contexture authors
;; Keywords: tools, convenience
;; URL: https://github.com/contexture/contexture
;; SPDX-License-Identifier: GPL-3.0-or-later

;;; Commentary:

;; `contexture-mode' shows the size of a buffer's context in the mode
;; line, and marks the lines that are in it (contexture-marks.el).
;; `contexture-global-mode' turns it on in all buffers that visit files.
;; Both only listen to a running server; neither starts one.

;;; Code:

(require 'contexture)
(require 'contexture-marks)

(defcustom contexture-token-budget nil
  "Maximum number of tokens that a context should have, or nil for no budget.
`contexture-mode' shows the tokens beside it, in the face
`contexture-over-budget' above 80 percent.  Only `contexture-gptel-mode'
leaves out what exceeds the budget."
  :type '(choice (const :tag "No budget" nil) (natnum :tag "Tokens"))
  :group 'contexture)

(defface contexture-over-budget '((t :inherit warning))
  "Face of the mode line's numbers when the budget is nearly used up."
  :group 'contexture)

(defvar-local contexture--from-global-mode nil
  "Non-nil if `contexture-global-mode' turned the mode on in this buffer.")

;; The mode survives a change of the major mode, as in `revert-buffer'.
(put 'contexture-mode 'permanent-local t)
(put 'contexture--from-global-mode 'permanent-local t)

;;;; The mode

;;;###autoload
(define-minor-mode contexture-mode
  "Show the context of this buffer while you edit.
The mode line shows the items and tokens of all layers of the buffer, such
as \"ctx:3/412\", and `contexture-token-budget' if that is set.  If you
chose another context with `contexture-switch', its name follows in
brackets, as in \"ctx[shared]:3/412\".  Lines that are in the context
have a mark in the fringe, or in the margin of a terminal; with point on
such a line the echo area says more.  All this appears once a command has
reached the server, and follows every change, whoever makes it.

\\[contexture-add-dwim] adds what is at hand, \\[contexture-list] lists \
the items, \\[contexture-preview] shows
what a model gets, and \\[contexture-menu] shows all commands.  They \
are behind
the prefix to which you bound the variable `contexture-command-map':

\\{contexture-command-map}"
  :lighter (:eval (contexture--lighter))
  :group 'contexture
  (if contexture-mode
      (contexture--mode-on)
    (contexture-marks--turn-off)
    (kill-local-variable 'contexture--from-global-mode)
    (remove-hook 'context-menu-functions #'contexture--context-menu t)
    (remove-hook 'kill-buffer-hook #'contexture--mode-off t)
    (unless (contexture-marks--buffers)
      (contexture--mode-unwatch))))

(defun contexture--mode-on ()
  "Turn the mode on."
  (add-hook 'kill-buffer-hook #'contexture--mode-off nil t)
  (add-hook 'context-menu-functions #'contexture--context-menu 10 t)
  ;; Only here look for the project: the mode line must not.
  (with-demoted-errors "Contexture: %S" (contexture--project-root))
  (unless (memq #'contexture--totals-changed contexture-notification-functions)
    (contexture-watch #'contexture--totals-changed)
    (contexture-watch #'contexture-marks--changed)
    (add-hook 'contexture-connected-hook #'contexture--mode-connected)
    (add-hook 'contexture-disconnected-hook #'contexture-marks--clear-all)
    (contexture--fetch-totals))
  (contexture-marks--turn-on))

(defun contexture--mode-unwatch ()
  "Stop listening to the server: no buffer has the mode any more."
  (contexture-unwatch #'contexture--totals-changed)
  (contexture-unwatch #'contexture-marks--changed)
  (remove-hook 'contexture-connected-hook #'contexture--mode-connected)
  (remove-hook 'contexture-disconnected-hook #'contexture-marks--clear-all))

(defun contexture--mode-off ()
  "Turn the mode off in a buffer that is going away."
  (contexture-mode -1))

(defun contexture--mode-connected ()
  "Show the sizes from the server that was just connected."
  (contexture--fetch-totals)
  (contexture-marks--fetch-all))

;;;; The mouse

(defun contexture--context-menu (menu click)
  "Add to MENU, of `context-menu-mode', the commands for the text at CLICK."
  (define-key-after menu [contexture-separator] menu-bar-separator)
  (pcase-dolist
      (`(,command ,label)
       `((contexture-add-dwim ,(if (use-region-p) "Add Region to Context"
                                 "Add to Context"))
         ,@(when (get-char-property (posn-point (event-start click)) 'contexture-mark)
             '((contexture-remove "Remove from Context")
               (contexture-freeze "Freeze Item of Context")))
         (contexture-send-to-agent "Send to Agent")
         (contexture-rewrite "Rewrite by a Model…")
         (contexture-list "List Context")))
    (define-key-after menu (vector command)
      (list 'menu-item label (contexture--at-click command click))))
  menu)

(defun contexture--at-click (command click)
  "Return a command that calls COMMAND for the region, or for the text at CLICK."
  (lambda ()
    (interactive)
    (unless (use-region-p) (mouse-set-point click))
    (call-interactively command)))

;;;; The mode line

(defun contexture--fetch-totals ()
  "Ask a running server for the sizes of all contexts."
  (when (contexture-running-p)
    (clrhash contexture--totals) ; the versions may be another server's
    (contexture-request-async
     'list-managers nil
     :success (lambda (entries)
                (dolist (entry (contexture--note-labels entries))
                  (contexture--note-totals (plist-get entry :manager)
                                           (plist-get entry :count)
                                           (plist-get entry :tokens)
                                           (plist-get entry :version)))))))

(defun contexture--totals-changed (method params)
  "Record the size in PARAMS if METHOD says that a context changed."
  (when (eq method 'context-changed)
    ;; Another Emacs may have given a project its new name.
    (when (equal (contexture--name (plist-get params :method)) "open-layers")
      (contexture--forget-layers))
    (contexture--note-totals (plist-get params :manager)
                             (plist-get params :count)
                             (plist-get params :tokens)
                             (plist-get params :version))))

(defconst contexture--lighter-width 16
  "Maximum width of a context's name in the mode line.")

(defun contexture--lighter ()
  "Return the mode line's text for this buffer."
  (pcase-let* ((context (contexture--known-context))
               (`(,items . ,tokens) (contexture--totals-of context))
               (name (contexture--lighter-name context))
               (stale (gethash context contexture-marks--stale 0)))
    (cond ((null items) name)
          (t (contexture--with-stale
              (if contexture-token-budget
                  (contexture--budget-lighter name items (or tokens 0))
                (format "%s:%d/%d" name items (or tokens 0)))
              stale)))))

(defun contexture--with-stale (text stale)
  "Return TEXT of the mode line with the number STALE, if that is not 0."
  (if (= stale 0)
      text
    (append (ensure-list text)
            (list (propertize (format " %d stale" stale)
                              'face 'contexture-mark-stale)))))

(defun contexture--lighter-name (manager)
  "Return the label of the context MANAGER in the mode line.
The buffer's own layers need no name."
  (cond ((or (listp manager)
             (equal manager (buffer-name (contexture--base-buffer))))
         " ctx")
        ((equal manager contexture--shared) " ctx[shared]")
        (t (format " ctx[%s]"
                   (truncate-string-to-width
                    (contexture--visible
                     (gethash manager contexture--labels
                              (file-name-nondirectory
                               (directory-file-name manager))))
                    contexture--lighter-width nil nil t)))))

(defun contexture--budget-lighter (name items tokens)
  "Return the text for NAME and ITEMS with TOKENS, and the budget.
The result is a list, since the mode line gives a string one face."
  (let ((text (format "%d/%d" tokens contexture-token-budget)))
    (list (format "%s:%d " name items)
          (if (> (* 5 tokens) (* 4 contexture-token-budget))
              (propertize text 'face 'contexture-over-budget)
            text))))

;;;; Everywhere

;;;###autoload
(define-minor-mode contexture-global-mode
  "Turn `contexture-mode' on in each buffer that visits a file.
When you turn this mode off, it turns `contexture-mode' off only where it
had turned it on."
  :global t
  :group 'contexture
  (if contexture-global-mode
      (contexture--global-on)
    (remove-hook 'find-file-hook #'contexture--turn-on)
    (remove-hook 'after-set-visited-file-name-hook #'contexture--turn-on)
    (dolist (buffer (contexture-marks--buffers))
      (with-current-buffer buffer
        (when contexture--from-global-mode (contexture-mode -1))))))

(defun contexture--global-on ()
  "Turn the mode on in buffers that visit files, now and later."
  (add-hook 'find-file-hook #'contexture--turn-on)
  (add-hook 'after-set-visited-file-name-hook #'contexture--turn-on)
  (dolist (buffer (buffer-list))
    (with-current-buffer buffer (contexture--turn-on))))

(defun contexture--turn-on ()
  "Turn the mode on if this buffer visits a file and the mode is off."
  (when (and buffer-file-name (not contexture-mode))
    (contexture-mode 1)
    (setq contexture--from-global-mode t)))

(provide 'contexture-mode)
;;; contexture-mode.el ends here
