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

(require 'contexture-count)
(require 'contexture-session)

(defvar contexture-session-line--session nil
  "Id of the current session, or nil.")

(defvar contexture-session-line--asking nil
  "Non-nil while the server is asked; `again' if a session changed meanwhile.")

;;;###autoload
(define-minor-mode contexture-session-mode-line-mode
  "Show the state of the current session in the mode line.
It is \"ses:idle\" while nothing would be sent, then the tokens that would
be sent now of those that the model takes, as in \"ses:1,234/8,192\", with
\"?\" if nobody knows the model's limit.  It ends with \"!\", in the face
`contexture-session-warning', if the messages fill more than 80 percent
of the limit.  A tilde says that the server is still counting.  Without
an open session, it shows nothing."
  :global t
  :group 'contexture-session
  :lighter (:eval (contexture-session-line--lighter))
  (setq contexture-session-line--session nil
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
    (remove-hook 'contexture-disconnected-hook #'contexture-session-line--forget)
    (contexture-count--unfollow 'mode-line))
  (force-mode-line-update t))

(defun contexture-session-state (stats)
  "Return `idle', `active' or `warning' for STATS.
STATS is an answer of `session-stats' or of `count-window'."
  (cond ((plist-get stats :needs-pruning) 'warning)
        ((> (or (plist-get stats :tokens) 0) 0) 'active)
        (t 'idle)))

(defun contexture-session-line--lighter ()
  "Return the text for the mode line.
It is a list if it has a face, since the mode line gives a string one
face."
  (when-let* ((count (contexture-count--of contexture-session-line--session))
              (short (contexture-count--short contexture-session-line--session)))
    (pcase (contexture-session-state count)
      ('idle " ses:idle")
      ('active (concat " ses:" short))
      ('warning (list " " (propertize (concat "ses:" short "!")
                                      'face 'contexture-session-warning))))))

(defun contexture-session-line--changed (method _params)
  "Ask again if METHOD is about sessions."
  (when (memq method contexture-session--topics)
    (contexture-session-line--ask)))

(defun contexture-session-line--ask ()
  "Ask a running server which session is the current one.
During that call, changes are only noted."
  (cond (contexture-session-line--asking
         (setq contexture-session-line--asking 'again))
        ((contexture-running-p)
         (setq contexture-session-line--asking t)
         (contexture-request-async
          'current-session nil
          :success #'contexture-session-line--answered
          :error (lambda (_) (contexture-session-line--answered nil))))))

(defun contexture-session-line--answered (session)
  "Show the count of SESSION, the server's answer, or nothing if it is nil."
  (let ((again (eq contexture-session-line--asking 'again)))
    (setq contexture-session-line--asking nil)
    (when contexture-session-mode-line-mode
      (contexture-session-line--follow (plist-get session :id))
      (when again
        (contexture-session-line--ask)))))

(defun contexture-session-line--follow (id)
  "Show the count of the session ID, or nothing if ID is nil."
  (setq contexture-session-line--session id)
  (if id
      (contexture-count--follow id 'mode-line #'contexture-session-line--redraw)
    (contexture-count--unfollow 'mode-line))
  (contexture-session-line--redraw))

(defun contexture-session-line--redraw ()
  "Redraw all mode lines."
  (force-mode-line-update t))

(defun contexture-session-line--forget ()
  "Clear the mode line, since the server is gone."
  (contexture-session-line--follow nil))

(provide 'contexture-session-line)
;;; contexture-session-line.el ends here
