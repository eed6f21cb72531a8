;;; contexture-dashboard.el --- How full a conversation is  -*- lexical-binding: t; -*-

;; Copyright (C) 2026 The Contexture authors

;; Author: The Contexture authors
;; Keywords: tools, convenience
;; URL: https://github.com/contexture/contexture
;; SPDX-License-Identifier: GPL-3.0-or-later

;;; Commentary:

;; `contexture-dashboard' shows a session while it grows: how much of its
;; model's window it fills, what the last windows were made of, how good
;; its context is, its checkpoints, and buttons for the usual commands.
;;
;; The dashboard is redrawn when the server reports a change, never at
;; fixed times.  While no window shows it, it gets no notifications and has
;; no global hooks.  contexture-dashboard-draw.el makes its text.

;;; Code:

(require 'contexture-session)
(require 'contexture-session-edit)
(require 'contexture-dashboard-draw)
(eval-when-compile (require 'subr-x))

(defconst contexture-dashboard-buffer "*contexture: dashboard*"
  "Name of the buffer that shows how full a session is.")

(defconst contexture-dashboard--pause 0.2
  "Minimum number of seconds between two updates of the dashboard.")

(defvar-local contexture-dashboard--data nil
  "Data shown, a plist of the server's answers by name.")

(defvar-local contexture-dashboard--updating nil
  "Non-nil during an update; `again' if the session changed meanwhile.")

(defvar-local contexture-dashboard--timer nil
  "The timer that ends the pause between two updates, or nil.")

(defvar-local contexture-dashboard--updated nil
  "Time at which the last update began.")

(defvar-local contexture-dashboard--stale nil
  "Reason why the data may be out of date, a string, or nil.")

(defvar-local contexture-dashboard--fixed nil
  "Id of the session that the user chose; nil to follow the current one.")

(defvar contexture-dashboard-mode-map
  (let ((map (make-sparse-keymap)))
    (define-key map "n" #'contexture-dashboard-next)
    (define-key map "p" #'contexture-dashboard-previous)
    (define-key map (kbd "TAB") #'contexture-dashboard-next)
    (define-key map (kbd "<backtab>") #'contexture-dashboard-previous)
    (define-key map (kbd "RET") #'contexture-dashboard-act)
    (define-key map "P" #'contexture-session-prune)
    (define-key map "S" #'contexture-session-summarize)
    (define-key map "c" #'contexture-session-checkpoint)
    (define-key map "b" #'contexture-dashboard-rollback)
    (define-key map "u" #'contexture-session-undo)
    (define-key map "U" #'contexture-session-redo)
    (define-key map "e" #'contexture-explain)
    (define-key map "V" #'contexture-session-views)
    (define-key map "t" #'contexture-session-transcript)
    (define-key map "a" #'contexture-session-add-message)
    (define-key map "C" #'contexture-session-configure)
    (define-key map "o" #'contexture-session-open)
    (define-key map "s" #'contexture-dashboard-switch)
    (define-key map "f" #'contexture-dashboard-follow)
    (define-key map "?" #'describe-mode)
    map)
  "Keymap of `contexture-dashboard-mode'.")

(define-derived-mode contexture-dashboard-mode special-mode "Dashboard"
  "Major mode for showing how full a session is.
\\<contexture-dashboard-mode-map>\
\\[contexture-dashboard-next] and \\[contexture-dashboard-previous] go from \
button to button, \\[contexture-dashboard-act] presses the one at point.
The dashboard updates itself; \\[revert-buffer] updates it at once.

\\{contexture-dashboard-mode-map}"
  (contexture--choose-evil-state 'emacs)
  (setq-local truncate-lines t
              revert-buffer-function #'contexture-dashboard--revert)
  (add-hook 'window-buffer-change-functions #'contexture-dashboard--shown-again nil t)
  (add-hook 'kill-buffer-hook #'contexture-dashboard--stop nil t)
  (add-hook 'change-major-mode-hook #'contexture-dashboard--stop nil t))

;;;###autoload
(defun contexture-dashboard (&optional session)
  "Show how full the current session is, and keep the figures up to date.
With a prefix argument, choose a SESSION and keep showing it, even when
another becomes the current one.  In a buffer that shows a session, show
that session."
  (interactive (list (if current-prefix-arg
                         (contexture-session--id
                          (contexture-session--read "Dashboard of"))
                       (if (derived-mode-p 'contexture-dashboard-mode)
                           contexture-dashboard--fixed
                         contexture-session--shown))))
  (pop-to-buffer (get-buffer-create contexture-dashboard-buffer))
  (unless (derived-mode-p 'contexture-dashboard-mode)
    (contexture-dashboard-mode))
  (contexture-dashboard--choose session)
  (contexture-dashboard--start))

(defun contexture-dashboard--choose (session)
  "Show SESSION, an id, from now on; nil means follow the current one."
  (unless (and contexture-dashboard--data
               (equal session contexture-dashboard--fixed))
    (setq contexture-dashboard--fixed session
          contexture-session--shown session
          contexture-dashboard--data nil)))

(defun contexture-dashboard-switch (session)
  "Show SESSION, an id, in the dashboard, and make it the current one."
  (interactive (list (contexture-session--id
                      (contexture-session--read "Switch to session"))))
  (contexture-dashboard--choose nil)
  (contexture-session-switch session))

;;;; Only while it is shown

(defun contexture-dashboard--start ()
  "Follow the session, and show its state."
  (contexture-watch #'contexture-dashboard--changed
                    (append '(agents-changed management-failed window-built)
                            contexture-session--topics))
  (add-hook 'contexture-connected-hook #'contexture-dashboard--connected)
  (add-hook 'contexture-disconnected-hook #'contexture-dashboard--disconnected)
  (add-hook 'window-state-change-hook #'contexture-dashboard--windows-changed)
  (contexture-dashboard--update))

(defun contexture-dashboard--stop ()
  "Stop following the session, and clean up."
  (contexture-unwatch #'contexture-dashboard--changed)
  (remove-hook 'contexture-connected-hook #'contexture-dashboard--connected)
  (remove-hook 'contexture-disconnected-hook #'contexture-dashboard--disconnected)
  (remove-hook 'window-state-change-hook #'contexture-dashboard--windows-changed)
  (when-let* ((buffer (get-buffer contexture-dashboard-buffer)))
    (with-current-buffer buffer
      (contexture-count--unfollow buffer)
      (when contexture-dashboard--timer
        (cancel-timer contexture-dashboard--timer)
        (setq contexture-dashboard--timer nil)))))

(defun contexture-dashboard--following-p ()
  "Return non-nil if the dashboard follows changes."
  (memq #'contexture-dashboard--changed contexture-notification-functions))

(defun contexture-dashboard--windows-changed ()
  "Stop following if no window shows the dashboard any more."
  (unless (get-buffer-window contexture-dashboard-buffer t)
    (contexture-dashboard--stop)))

(defun contexture-dashboard--shown-again (_window)
  "Follow the session again, if the dashboard was hidden."
  (unless (contexture-dashboard--following-p)
    (when-let* ((buffer (get-buffer contexture-dashboard-buffer)))
      (with-current-buffer buffer
        (contexture-dashboard--start)))))

;;;; What happens

(defun contexture-dashboard--changed (method params)
  "Update the dashboard if METHOD and PARAMS concern what it shows."
  (when-let* ((buffer (get-buffer contexture-dashboard-buffer)))
    (with-current-buffer buffer
      (when (contexture-dashboard--concerns-p method params)
        (contexture-dashboard--update)))))

(defun contexture-dashboard--concerns-p (method params)
  "Return non-nil if METHOD with PARAMS concerns what this buffer shows.
If no session was chosen, news that another one is current does, too."
  (pcase method
    ('agents-changed t)
    ('context-changed
     (contexture--of-context-p
      (plist-get params :manager)
      (contexture-dashboard--context (plist-get contexture-dashboard--data :session))))
    (_
     (or (equal (plist-get params :id) contexture-session--shown)
         (and (not contexture-dashboard--fixed)
              (or (null contexture-session--shown)
                  (member (plist-get params :method)
                          '("open-session" "switch-session" "fork-session"
                            "import-session"))))))))

(defun contexture-dashboard--connected ()
  "Update from the server that was just connected."
  (when-let* ((buffer (get-buffer contexture-dashboard-buffer)))
    (with-current-buffer buffer
      (contexture-dashboard--update))))

(defun contexture-dashboard--disconnected ()
  "Show that the data may be out of date."
  (when-let* ((buffer (get-buffer contexture-dashboard-buffer)))
    (with-current-buffer buffer
      (setq contexture-dashboard--stale "the server is away")
      (contexture-dashboard--draw))))

(defun contexture-dashboard--revert (&rest _)
  "Update the dashboard at once."
  (setq contexture-dashboard--updated nil)
  (when contexture-dashboard--updating
    (message "%s" contexture--waiting))
  (contexture-dashboard--start))

;;;; Updating

(defun contexture-dashboard--update ()
  "Ask the server about the session, and show the answer.
During an update, or just after it, a change is only noted."
  (cond (contexture-dashboard--updating
         (setq contexture-dashboard--updating 'again))
        (contexture-dashboard--timer)
        ((contexture-dashboard--early-p)
         (setq contexture-dashboard--timer
               (run-at-time contexture-dashboard--pause nil
                            #'contexture-dashboard--pause-over (current-buffer))))
        (t
         (setq contexture-dashboard--updating t
               contexture-dashboard--updated (float-time))
         (unless contexture-dashboard--data
           (contexture-dashboard--draw))
         (contexture-dashboard--ask-session (current-buffer)))))

(defun contexture-dashboard--early-p ()
  "Return non-nil if the last update began a moment ago."
  (and contexture-dashboard--updated
       (< 0 (- (float-time) contexture-dashboard--updated)
          contexture-dashboard--pause)))

(defun contexture-dashboard--pause-over (buffer)
  "Update BUFFER now that its pause is over."
  (when (buffer-live-p buffer)
    (with-current-buffer buffer
      (setq contexture-dashboard--timer nil
            contexture-dashboard--updated nil)
      (contexture-dashboard--update))))

(defun contexture-dashboard--ask-session (buffer)
  "Find the session that BUFFER shows, then ask the server about it."
  (let ((fixed contexture-dashboard--fixed))
    (contexture-request-async
     (if fixed 'list-sessions 'current-session)
     nil
     :success
     (lambda (result)
       (contexture-dashboard--ask
        buffer (if fixed
                   (cl-find fixed result :test #'equal
                            :key (lambda (it) (plist-get it :id)))
                 result)))
     :error
     (lambda (problem)
       (if (contexture-session--none-open-p problem)
           (contexture-dashboard--ask-agents buffer)
         (contexture-dashboard--fail buffer problem))))))

(defun contexture-dashboard--ask-agents (buffer)
  "Ask about agents alone, since no session is open, and show that in BUFFER."
  (cl-flet ((finish (agents)
              (contexture-dashboard--finish buffer (list :session nil :agents agents))))
    (contexture-request-async
     'list-agents '(:limit 8 :brief t)
     :success #'finish
     :error (lambda (_) (finish nil)))))

(defun contexture-dashboard--questions (session)
  "Return the calls about SESSION, each as (NAME METHOD . PARAMS)."
  (let ((params (list :session (plist-get session :id))))
    `((:stats session-stats ,@params)
      (:quality quality-score ,@params)
      (:settings configure-session ,@params)
      (:checkpoints list-checkpoints ,@params)
      (:reports explain-window ,@params)
      (:usage usage-log ,@params :limit 5)
      (:views list-notes ,@params :limit 5 :brief t)
      (:agents list-agents :limit 8 :brief t)
      (:items list-items
              ,@(contexture--context-params (contexture-dashboard--context session))
              :brief t))))

(defun contexture-dashboard--context (session)
  "Return the context or the layers whose items SESSION shows."
  (or (plist-get session :managers) (plist-get session :manager)))

(defun contexture-dashboard--ask (buffer session)
  "Ask all about SESSION, an entry or nil, and show the answers in BUFFER."
  (if (null session)
      (contexture-dashboard--finish buffer '(:session nil :gone t))
    (let* ((questions (contexture-dashboard--questions session))
           (left (length questions))
           (data (list :session session))
           failure)
      (cl-flet ((answered ()
                  (when (= 0 (cl-decf left))
                    (if failure
                        (contexture-dashboard--fail buffer failure)
                      (contexture-dashboard--finish buffer data)))))
        (pcase-dolist (`(,name ,method . ,params) questions)
          (contexture-request-async
           method params
           :success (lambda (result)
                      (setq data (plist-put data name result))
                      (answered))
           :error (lambda (problem)
                    ;; Leave out what an older server does not know.
                    (unless (eql (plist-get problem :code) -32601)
                      (setq failure problem))
                    (answered))))))))

(defun contexture-dashboard--finish (buffer data)
  "Show DATA in BUFFER; ask again if something changed meanwhile."
  (when (buffer-live-p buffer)
    (with-current-buffer buffer
      (setq contexture-dashboard--data data
            contexture-dashboard--stale nil)
      (unless contexture-dashboard--fixed
        (setq contexture-session--shown (plist-get (plist-get data :session) :id)))
      (contexture-dashboard--count (plist-get (plist-get data :session) :id))
      (contexture-dashboard--draw)
      (contexture-dashboard--settle))))

(defun contexture-dashboard--count (id)
  "Have what the session ID would send counted while the dashboard is shown."
  (if (and id (contexture-dashboard--following-p))
      (contexture-count--follow id (current-buffer) #'contexture-dashboard--draw)
    (contexture-count--unfollow (current-buffer))))

(defun contexture-dashboard--fail (buffer problem)
  "Show in BUFFER that PROBLEM prevented its update."
  (when (buffer-live-p buffer)
    (with-current-buffer buffer
      (setq contexture-dashboard--stale (contexture-session--error-text problem))
      (contexture-dashboard--draw)
      (contexture-dashboard--settle))))

(defun contexture-dashboard--settle ()
  "End an update, and begin the next if something changed meanwhile."
  (let ((again (eq contexture-dashboard--updating 'again)))
    (setq contexture-dashboard--updating nil)
    (when (and again (contexture-dashboard--following-p))
      (contexture-dashboard--update))))

;;;; Drawing

(defun contexture-dashboard--draw ()
  "Show this buffer's data, keeping point and the windows in place."
  (setq header-line-format
        (contexture-dashboard--header contexture-dashboard--data
                                      contexture-dashboard--stale))
  (let ((text (contexture-dashboard--text contexture-dashboard--data)))
    (unless (string= text (buffer-string))
      (let ((places (mapcar (lambda (window)
                              (cons window
                                    (contexture-dashboard--place (window-point window))))
                            (get-buffer-window-list nil nil t)))
            (place (contexture-dashboard--place (point)))
            (inhibit-read-only t))
        (erase-buffer)
        (insert text)
        (goto-char (contexture-dashboard--position place))
        (pcase-dolist (`(,window . ,place) places)
          (set-window-point window (contexture-dashboard--position place)))))))

(defun contexture-dashboard--place (position)
  "Return the place of POSITION as a list (BUTTON LINE COLUMN).
BUTTON is the name of the button there, or nil."
  (save-excursion
    (goto-char position)
    (list (when-let* ((button (button-at position)))
            (button-get button 'contexture-name))
          (line-number-at-pos) (current-column))))

(defun contexture-dashboard--position (place)
  "Return the position that PLACE has in the present text."
  (pcase-let ((`(,name ,line ,column) place))
    (save-excursion
      (or (and name (contexture-dashboard--find name))
          (progn (goto-char (point-min))
                 (forward-line (1- line))
                 (move-to-column column)
                 (point))))))

(defun contexture-dashboard--find (name)
  "Return the position of the button NAME, or nil."
  (let ((button (next-button (point-min) t)))
    (while (and button (not (equal name (button-get button 'contexture-name))))
      (setq button (next-button (button-end button))))
    (and button (button-start button))))

;;;; Commands

(defun contexture-dashboard-follow ()
  "Follow the current session instead of a chosen one."
  (interactive)
  (contexture-dashboard--choose nil)
  (contexture-dashboard--revert))

(defun contexture-dashboard-next (&optional count)
  "Go to the next button, or COUNT buttons on."
  (interactive "p")
  (forward-button (or count 1) t t))

(defun contexture-dashboard-previous (&optional count)
  "Go to the previous button, or COUNT buttons back."
  (interactive "p")
  (backward-button (or count 1) t t))

(defun contexture-dashboard-act ()
  "Press the button at point, or the first one on its line."
  (interactive)
  (let ((button (or (button-at (point))
                    (save-excursion
                      (beginning-of-line)
                      (let ((next (next-button (point) t)))
                        (and next (<= (button-start next) (line-end-position))
                             next))))))
    (if button (push-button (button-start button))
      (user-error "There is no button here; n goes to the next"))))

(defun contexture-dashboard-rollback (&optional checkpoint)
  "Go back to a checkpoint of the session, chosen among those shown.
CHECKPOINT, an id, is the default."
  (interactive)
  (let ((checkpoints (or (plist-get contexture-dashboard--data :checkpoints)
                         (user-error "There is no checkpoint yet; c takes one")))
        (stats (plist-get contexture-dashboard--data :stats)))
    (contexture-session-rollback
     (contexture-session--choose-checkpoint
      "Go back to" checkpoints (plist-get stats :turns) checkpoint))))

(provide 'contexture-dashboard)
;;; contexture-dashboard.el ends here
