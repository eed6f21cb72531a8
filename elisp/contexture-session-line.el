;;; contexture-session-line.el --- A session in the mode line  -*- lexical-binding: t; -*-

;; Copyright (C) 2026 The Contexture authors

;; Author: The Contexture authors
;; Keywords: tools, convenience
;; URL: https://github.com/contexture/contexture
;; SPDX-License-Identifier: GPL-3.0-or-later

;;; Commentary:

;; `contexture-session-mode-line-mode' shows in the mode line whether the
;; current session is idle, active or nearly full.  It listens to a running
;; server and starts none; nothing polls.

;;; Code:

(require 'contexture-session)

(defvar contexture-session-line--stats nil
  "Last result of `session-stats' for the current session, or nil.")

(defvar contexture-session-line--asking nil
  "Non-nil while the server is asked; `again' if a session changed meanwhile.")

;;;###autoload
(define-minor-mode contexture-session-mode-line-mode
  "Show the state of the current session in the mode line.
The mode line shows \"ses:idle\" while the session is empty, \"ses:45%\"
while it fills 45 percent of its model's window, and \"ses:85%!\", in the
face `contexture-session-warning', above 80 percent.  Without an open
session, it shows nothing."
  :global t
  :group 'contexture-session
  :lighter (:eval (contexture-session-line--lighter))
  (setq contexture-session-line--stats nil
        contexture-session-line--asking nil)
  (if contexture-session-mode-line-mode
      (progn
        (contexture-watch #'contexture-session-line--changed
                          contexture-session--topics)
        (add-hook 'contexture-connected-hook #'contexture-session-line--ask)
        (add-hook 'contexture-disconnected-hook #'contexture-session-line--forget)
        (contexture-session-line--ask))
    (contexture-unwatch #'contexture-session-line--changed)
    (remove-hook 'contexture-connected-hook #'contexture-session-line--ask)
    (remove-hook 'contexture-disconnected-hook #'contexture-session-line--forget))
  (force-mode-line-update t))

(defun contexture-session-state (stats)
  "Return `idle', `active' or `warning' for STATS, from `session-stats'."
  (cond ((plist-get stats :needs-pruning) 'warning)
        ((> (or (plist-get stats :tokens) 0) 0) 'active)
        (t 'idle)))

(defun contexture-session-line--lighter ()
  "Return the text for the mode line.
It is a list if it has a face, since the mode line gives a string one
face."
  (when-let* ((stats contexture-session-line--stats))
    (let ((percent (plist-get stats :utilization-percent)))
      (pcase (contexture-session-state stats)
        ('idle " ses:idle")
        ('active (format " ses:%d%%%%" percent))
        ('warning (list " " (propertize (format "ses:%d%%%%!" percent)
                                        'face 'contexture-session-warning)))))))

(defun contexture-session-line--changed (method _params)
  "Ask again if METHOD is about sessions."
  (when (memq method contexture-session--topics)
    (contexture-session-line--ask)))

(defun contexture-session-line--ask ()
  "Ask a running server how full the current session is.
During that call, changes are only noted."
  (cond (contexture-session-line--asking
         (setq contexture-session-line--asking 'again))
        ((contexture-running-p)
         (setq contexture-session-line--asking t)
         (contexture-request-async
          'session-stats nil
          :success #'contexture-session-line--answered
          :error (lambda (_) (contexture-session-line--answered nil))))))

(defun contexture-session-line--answered (stats)
  "Show STATS, the server's answer, or nothing if STATS is nil."
  (let ((again (eq contexture-session-line--asking 'again)))
    (setq contexture-session-line--asking nil)
    (when contexture-session-mode-line-mode
      (setq contexture-session-line--stats stats)
      (force-mode-line-update t)
      (when again
        (contexture-session-line--ask)))))

(defun contexture-session-line--forget ()
  "Clear the mode line, since the server is gone."
  (setq contexture-session-line--stats nil)
  (force-mode-line-update t))

(provide 'contexture-session-line)
;;; contexture-session-line.el ends here
